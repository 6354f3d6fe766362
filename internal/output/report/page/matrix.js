// The matrix: what each row of the ranking reaches in each namespace.

/** What a row has in a namespace: the cells that the filters keep. */
const cellsIn = (row, namespace) => row.cells.filter((c) => c.namespace === namespace && filter.kept[c.place]);

const letters = { Node: 'N', ServiceAccount: 'A', User: 'U', Group: 'G', Namespace: '+', Secret: 'S', Pod: 'P' };

/** How dark a cell is: by powers of ten of what is reached. */
const shade = (n) => (n >= 100 ? 3 : n >= 10 ? 2 : 1);

function drawMatrixCell(row, namespace, cell) {
  const where = namespace || 'no namespace';
  if (row.admin === 'Certain' && row.cells.length === 0) {
    cell.classList.add('owned');
    fill(cell, sign('all', `${where}: everything, by cluster-admin`));
    return;
  }
  const cells = cellsIn(row, namespace);
  if (cells.length === 0) {
    cell.classList.add(paths.unknown || page.data.certainCells ? 'unknown' : 'nothing');
    fill(
      cell,
      paths.unknown || page.data.certainCells ? sign('?', `${where}: not known`) : sign('·', `${where}: nothing`),
    );
    return;
  }
  let certain = 0,
    possible = 0;
  for (const c of cells) {
    certain += c.certain;
    possible += c.possible;
  }
  cell.classList.add(certain > 0 ? `certain${shade(certain + possible)}` : 'possible');
  const total = [certain > 0 && thousands(certain), possible > 0 && `${thousands(possible)}?`]
    .filter(Boolean)
    .join('+');
  fill(
    cell,
    sign(total, `${where}: ${cells.map((c) => totalText(c.kind, c)).join(', ')}`),
    el('span', { class: 'letters', 'aria-hidden': 'true' }, cells.map((c) => letters[c.kind]).join('')),
  );
}

/** The height of .slanted, in widths of the page's text, which is larger than the text of heads. */
const headRoom = 6.5 / 0.8125;

const matrixColumns = () => [
  {
    title: 'name',
    width: narrow.matches ? 11.5 : 15,
    class: 'title',
    isName: true,
    head: () => (page.data.allNodes ? 'Nodes' : 'Start'),
    draw: (row, cell, width) => fill(cell, rowNames(row, width - padding() * rem())),
  },
  ...filter.namespaces.map((namespace) => ({
    title: namespace || clusterWide,
    namespace,
    width: 4.25,
    class: 'square',
    head: () =>
      el('span', { class: 'slanted' }, shortNameOf(namespace || clusterWide, paths.namespaces, headRoom * rem())),
    draw: (row, cell) => drawMatrixCell(row, namespace, cell),
  })),
];

const matrixLegend = () =>
  el(
    'ul',
    { class: 'legend', 'aria-label': 'What the signs mean' },
    el('li', {}, el('span', { class: 'swatch certain2' }, '7'), 'reached'),
    el('li', {}, el('span', { class: 'swatch certain2' }, '7+2?'), '2 more are possible'),
    el('li', {}, el('span', { class: 'swatch possible' }, '2?'), 'only possible'),
    el('li', {}, el('span', { class: 'swatch owned' }, 'all'), 'everything, by cluster-admin'),
    paths.unknown
      ? el('li', {}, el('span', { class: 'swatch unknown' }, '?'), 'not known')
      : el('li', {}, el('span', { class: 'swatch nothing' }, '·'), 'nothing'),
    el(
      'li',
      {},
      el('b', {}, 'S'),
      ' secrets, ',
      el('b', {}, 'A'),
      ' accounts, ',
      el('b', {}, 'P'),
      ' pods, ',
      el('b', {}, '+'),
      ' may create pods, ',
      el('b', {}, 'N'),
      ' nodes, ',
      el('b', {}, 'U'),
      ' users, ',
      el('b', {}, 'G'),
      ' groups',
    ),
  );
