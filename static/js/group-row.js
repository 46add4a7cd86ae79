// On a phone the row of a group is wider than the window: it begins where the reader is.
document.querySelector(".ll-group-row [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
