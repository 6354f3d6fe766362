// A search in lists that are in the document as a whole.

/** At most so many entries of a list are made before somebody asks for more. */
const shownAtOnce = 300;

/**
 * Makes a search field for entries: { element, text, group }. Entries that do not have the text are
 * hidden, and so are groups of which all are.
 */
function searchField(entries, noun, placeholder) {
  const field = el('input', {
    type: 'search',
    id: 'filter-q',
    placeholder,
    autocomplete: 'off',
    spellcheck: 'false',
    on: { input: (e) => link.set({ q: e.target.value }) },
  });
  const found = el('p', { class: 'found' });
  link.listeners.push(() => {
    const q = link.get('q').trim().toLowerCase();
    if (field.value !== link.get('q')) field.value = link.get('q');
    let n = 0;
    const groups = new Map();
    entries.forEach((e) => {
      const fits = q === '' || e.text.toLowerCase().includes(q);
      e.element.hidden = !fits;
      if (fits) n++;
      if (e.group) groups.set(e.group, (groups.get(e.group) ?? false) || fits);
    });
    for (const [group, fits] of groups) group.hidden = !fits;
    fill(found, q === '' ? count(n, noun) : `${thousands(n)} of ${count(entries.length, noun)}`);
    page.say(found.textContent);
  });
  const form = { class: 'filters', role: 'search', 'aria-label': 'Search', on: { submit: (e) => e.preventDefault() } };
  return [
    el('form', form, el('div', { class: 'field field-q' }, el('label', { for: 'filter-q' }, 'Search'), field)),
    found,
  ];
}

/** Entries in a parent: the first ones at once, the others when they are asked for, searched or printed. */
function withMore(parent, items, make, noun) {
  add(parent, items.slice(0, shownAtOnce).map(make));
  const rest = items.slice(shownAtOnce);
  if (rest.length === 0) return parent;
  const more = el('button', { type: 'button', class: 'plain' }, `Show ${count(rest.length, `more ${noun}`)}`);
  const showRest = () => {
    more.remove();
    add(parent, rest.splice(0).map(make));
  };
  more.addEventListener('click', showRest);
  addEventListener('beforeprint', showRest);
  link.listeners.push(() => link.get('q') && showRest());
  return [parent, more];
}

/**
 * A table with a caption for screen readers. Where it is narrow, cells are below each other, each with the head of its
 * column; the roles keep it a table for screen readers there.
 */
function table(caption, heads, rows) {
  for (const row of rows) [...row.cells].forEach((cell, i) => (cell.dataset.head = heads[i]));
  return el(
    'div',
    { class: 'wide', tabindex: '0', role: 'region', 'aria-label': `Table: ${caption}` },
    el(
      'table',
      { role: 'table' },
      el(
        'thead',
        { role: 'rowgroup' },
        el(
          'tr',
          { role: 'row' },
          heads.map((h) => el('th', { scope: 'col', role: 'columnheader' }, h)),
        ),
      ),
      el('tbody', { role: 'rowgroup' }, rows),
    ),
  );
}

const tableRow = (cells) =>
  el(
    'tr',
    { role: 'row' },
    cells.map((c) => el('td', { role: 'cell' }, c)),
  );

/** Entries whose content is made when they are opened, or printed. */
const unfilled = new Map();

function fillWhenOpened(element, body, make) {
  const fillBody = () => {
    if (!body.firstChild) add(body, make());
    unfilled.delete(element);
  };
  unfilled.set(element, fillBody);
  element.addEventListener('toggle', fillBody);
}

/** Opens entries for printing, and closes them after it. */
function openForPrint() {
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details.entry:not([open], [hidden])')];
    for (const element of opened) {
      unfilled.get(element)?.();
      element.open = true;
    }
  });
  addEventListener('afterprint', () => {
    for (const element of opened) element.open = false;
  });
}

/** Opens the entry that the address names, and names in the address what is opened. */
function linkedDetails(entries) {
  for (const [id, element] of entries) {
    element.addEventListener('toggle', () => {
      if (element.open && link.get('open') !== id) link.set({ open: id });
      else if (!element.open && link.get('open') === id) link.set({ open: '' });
    });
  }
  link.listeners.push(() => {
    const element = entries.get(link.get('open'));
    if (element && !element.open) {
      element.open = true;
      element.scrollIntoView({ block: 'nearest' });
    }
  });
}

function start() {
  link.start();
  openForPrint();
  link.changed();
  performance.mark('ready');
  document.documentElement.dataset.ready = '';
}
