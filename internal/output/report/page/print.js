// What is printed: the grids show a part only, so that the paper gets tables of its own.

const printed = 200;

function printedRows() {
  const rows = filter.rows.slice(0, printed);
  const left = filter.rows.length - rows.length;
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
              el('td', {}, printedNames(r)),
              el('td', {}, adminBadge(r)),
              el('td', {}, target ? '' : r.admin === 'Certain' && r.cells.length === 0 ? 'everything' : totalsText(r.totals)),
            ),
          ),
        ),
      ),
      left > 0 && el('p', {}, `${count(left, 'more row')} not printed.`),
    ),
    rows
      .filter((r) => r.path)
      .map((r) =>
        el(
          'section',
          { class: 'printed-path' },
          el('h3', {}, printedNames(r), ` ${r.admin === 'Certain' ? 'to' : 'possibly to'} ${goal}`),
          stepList(paths.steps(r.path)),
        ),
      ),
  );
}

const printedNames = (row) => [
  row.names.slice(0, 10).map((n, i) => [i > 0 && ', ', nameOf(n)]),
  row.names.length > 10 && ` and ${thousands(row.names.length - 10)} more`,
];

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
