// The ranking: a row for each start, or for nodes that reach the same.

const narrow = matchMedia('(max-width: 48rem)');

/** The names of a row: the one that the search finds first, and how many more there are. */
function rowName(row) {
  const q = link.get('q').trim().toLowerCase();
  const found = q ? row.names.find((n) => n.toLowerCase().includes(q)) : undefined;
  return { first: found ?? row.names[0], more: row.names.length - 1 };
}

/** The names of a row, as they fit into a width. */
function rowNames(row, width) {
  const { first, more } = rowName(row);
  const rest = more > 0 ? ` and ${thousands(more)} more` : '';
  return el(
    'span',
    { class: 'names' },
    shortNameOf(first, paths.names, width - widthOf(rest)),
    rest && el('span', { class: 'more' }, rest),
  );
}

const controlPlaneTag = 'control plane';
/** The padding of a cell, and of a tag with its gap, in rem. */
const padding = () => (narrow.matches ? 1 : 1.5);

const adminBadge = (row) =>
  badge(row.state, { Certain: 'certain', Possible: 'possible', Unknown: 'unknown', No: 'not reached' }[row.state]);

const totalColumn = (kind, title) => ({
  title,
  width: 6,
  class: 'number',
  head: () => title,
  draw(row, cell) {
    const t = row.totals[kind];
    if (row.admin === 'Certain' && row.cells.length === 0) fill(cell, el('span', { class: 'faint' }, 'all'));
    else if (!t)
      fill(
        cell,
        paths.unknown || page.data.certainCells
          ? el('span', { class: 'unknown' }, '?')
          : el('span', { class: 'faint' }, '0'),
      );
    else
      fill(
        cell,
        thousands(t.certain),
        t.possible > 0 && el('span', { class: 'possible' }, ` +${thousands(t.possible)}?`),
      );
  },
});

const rankColumns = () => {
  const name = {
    title: 'name',
    width: 0,
    class: 'title',
    isName: true,
    head: () => (page.data.allNodes ? 'Nodes' : 'Start'),
    draw: (row, cell, width) => {
      const tag = row.controlPlane ? widthOf(controlPlaneTag) + 1.5 * rem() : 0;
      fill(
        cell,
        rowNames(row, width - padding() * rem() - tag),
        row.controlPlane && el('span', { class: 'tag' }, controlPlaneTag),
      );
    },
  };
  const admin = {
    title: 'admin',
    width: narrow.matches ? 8 : 9.5,
    head: () => upperFirst(goal),
    draw: (row, cell) => fill(cell, adminBadge(row)),
  };
  const rank = {
    title: 'rank',
    width: 3.5,
    class: 'number faint',
    head: () => '#',
    draw: (row, cell) => fill(cell, thousands(row.rank)),
  };
  if (narrow.matches) return [name, admin];
  if (target) return [rank, name, admin];
  return [
    rank,
    name,
    admin,
    totalColumn('Node', 'Nodes'),
    totalColumn('ServiceAccount', 'Accounts'),
    totalColumn('Secret', 'Secrets'),
    totalColumn('Namespace', 'Pods in'),
  ];
};
