// On a phone the row of a group is wider than the window. Scroll the row to the open page, but not the window:
// that would undo the window's scrolling to an error or to the anchor in the address.
{
  const page = document.querySelector(".ll-group-row [aria-current]");
  const row = page?.closest(".ll-group-row");
  if (row) {
    const [inner, outer] = [page, row].map((element) => element.getBoundingClientRect());
    row.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }
}
