// On a phone the row of a group is wider than the window. Scroll it to the open page.
document.querySelector(".ll-group-row [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
