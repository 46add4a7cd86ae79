// "/" puts the cursor into the search, from anywhere but a field that one writes into.
document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, textarea, select, [contenteditable]");
  const search = document.getElementById("search");
  if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || writing || !search) return;
  event.preventDefault();
  search.focus();
  search.select();
});
