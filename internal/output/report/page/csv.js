// The ranking as CSV, for spreadsheets: a row for each node or other start.

/** A cell. Spreadsheets take what begins with =, +, - or @ for a formula: an apostrophe makes it a text. */
const csvCell = (value) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;

function csvRows() {
  const made = JSON.parse(document.getElementById('metadata').textContent) ?? {};
  const columns = ['rank', page.data.allNodes ? 'node' : 'start', goal, 'controlPlane'];
  const rows = [[...columns, ...kinds.flatMap(([kind]) => [`${kind} certain`, `${kind} possible`]), 'path', 'cluster', 'date']];
  for (const r of paths.rows) {
    const owns = r.admin === 'Certain' && r.cells.length === 0;
    const totals = kinds.flatMap(([kind]) => {
      const t = r.totals[kind] ?? { certain: 0, possible: 0 };
      return owns ? ['all', ''] : [t.certain, t.possible];
    });
    const steps = r.path ? paths.steps(r.path).map((s) => `${s.technique} → ${holdingText(s.to)}`) : [];
    for (const name of r.names) {
      rows.push([r.rank, name, r.state, r.controlPlane, ...totals, steps.join('; '), page.data.state.origin, made.date ?? '']);
    }
  }
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

/** The button that saves all rows. The file is made from the page's data: nothing is asked for. */
const csvButton = () =>
  el(
    'button',
    {
      type: 'button',
      class: 'plain',
      on: {
        click: () => {
          const href = URL.createObjectURL(new Blob([csvRows()], { type: 'text/csv' }));
          el('a', { href, download: 'attack-paths.csv' }).click();
          setTimeout(() => URL.revokeObjectURL(href));
        },
      },
    },
    'Save all rows as CSV',
  );
