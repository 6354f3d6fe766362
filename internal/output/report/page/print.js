// What is printed: the grids show a part only, so that the paper gets tables of its own.

function printedRows() {
  const { rows } = filter;
  return el(
    'div',
    { class: 'print' },
    section(
      'printed',
      filter.isSet() ? 'The ranking, as filtered' : 'The ranking',
      el(
        'table',
        {},
        el(
          'thead',
          {},
          el(
            'tr',
            {},
            ['#', page.data.allNodes ? 'Nodes' : 'Start', upperFirst(goal), target ? '' : 'Also reaches'].map((t) =>
              el('th', { scope: 'col' }, t),
            ),
          ),
        ),
        el(
          'tbody',
          {},
          rows.map((r) =>
            el(
              'tr',
              {},
              el('td', { class: 'number' }, thousands(r.rank)),
              el('td', {}, r.names.map((n, i) => [i > 0 && ', ', nameOf(n)])),
              el('td', {}, adminBadge(r)),
              el('td', {}, target ? '' : r.admin === 'Certain' && r.cells.length === 0 ? 'everything' : totalsText(r.totals)),
            ),
          ),
        ),
      ),
    ),
    !target && printedMatrix(rows),
    rows
      .filter((r) => r.path)
      .map((r) =>
        el(
          'section',
          { class: 'printed-path' },
          el('h3', {}, printedName(r), ` ${r.admin === 'Certain' ? 'to' : 'possibly to'} ${goal}`),
          stepList(paths.steps(r.path)),
        ),
      ),
  );
}

/** A row of the ranking, which has all names. */
const printedName = ({ rank, names }) => [
  `#${thousands(rank)} `,
  nameOf(names[0]),
  names.length > 1 && ` and ${thousands(names.length - 1)} more`,
];

/** The matrix in blocks of as many columns as fit on paper. */
function printedMatrix(rows) {
  const columns = 10;
  const blocks = Array.from({ length: Math.ceil(filter.namespaces.length / columns) }, (_, i) =>
    filter.namespaces.slice(i * columns, (i + 1) * columns),
  );
  const cell = (row, namespace) => {
    const td = el('td', { class: 'square' });
    drawMatrixCell(row, namespace, td);
    return td;
  };
  const ownsAll = (row) => row.admin === 'Certain' && row.cells.length === 0;
  const reachesOneOf = (row, block) => ownsAll(row) || block.some((n) => cellsIn(row, n).length > 0);
  return section(
    'printed-matrix',
    'What is reached in each namespace',
    matrixLegend(),
    blocks.length > 1 && el('p', {}, 'Each table has rows for those that reach something in its namespaces.'),
    blocks.map((block) =>
      el(
        'table',
        {},
        el(
          'thead',
          {},
          el(
            'tr',
            {},
            el('th', { scope: 'col' }, page.data.allNodes ? 'Nodes' : 'Start'),
            block.map((n) => el('th', { scope: 'col' }, el('span', { class: 'slanted' }, nameOf(n || clusterWide)))),
          ),
        ),
        el(
          'tbody',
          {},
          rows
            .filter((r) => blocks.length === 1 || reachesOneOf(r, block))
            .map((r) => el('tr', {}, el('th', { scope: 'row' }, printedName(r)), block.map((n) => cell(r, n)))),
        ),
      ),
    ),
  );
}

function preparePrint() {
  let sheet = null;
  addEventListener('beforeprint', () => {
    sheet?.remove();
    sheet = printedRows();
    page.main.append(sheet);
  });
  addEventListener('afterprint', () => {
    sheet?.remove();
    sheet = null;
  });
}
