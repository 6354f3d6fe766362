// The page of attack-paths.

paths.read(page.data);

/** How many nodes are in each state. Those of the control plane are counted apart. */
function tally() {
  const n = { Certain: 0, Possible: 0, Unknown: 0, No: 0, controlPlane: 0, all: 0 };
  for (const r of paths.rows) {
    n.all += r.names.length;
    if (r.controlPlane) n.controlPlane += r.names.length;
    else n[r.state] += r.names.length;
  }
  return n;
}

function headline(n) {
  const noun = page.data.allNodes ? 'node' : 'start';
  const of = `of ${count(n.all, noun)}`;
  if (!page.data.allNodes && n.all === 1) {
    const row = paths.rows[0];
    return row.state === 'Unknown'
      ? `It is not known whether ${row.names[0]} ${ofOne(own)}`
      : `${row.names[0]} ${stateWords[row.state]}`;
  }
  if (n.Certain > 0) return `${thousands(n.Certain)} ${of} ${agrees(n.Certain, own)}`;
  if (n.Possible > 0) return `${thousands(n.Possible)} ${of} may ${own}`;
  if (n.Unknown > 0) return `It is not known which ${plural(noun)} ${own}`;
  return page.data.allNodes
    ? n.controlPlane > 0
      ? `No node but those of the control plane ${ofOne(own)}`
      : `No node ${ofOne(own)}`
    : `None of these ${ofOne(own)}`;
}

function sentences(n) {
  const all = [];
  const noun = page.data.allNodes ? 'node' : 'start';
  if (page.data.allNodes || n.all > 1) {
    const parts = [];
    if (n.Certain > 0 && n.Possible > 0) parts.push(`${thousands(n.Possible)} more may`);
    if (n.controlPlane > 0)
      parts.push(
        `${count(n.controlPlane, noun)} ${agrees(n.controlPlane, 'run the control plane')}, and ${agrees(n.controlPlane, ownIt)} by that`,
      );
    if (n.Unknown > 0 && n.Certain + n.Possible > 0) parts.push(`of ${thousands(n.Unknown)} it is not known`);
    if (parts.length > 0) all.push(upperFirst(parts.join('; ')) + '.');
    if (paths.rows.length < n.all)
      all.push(`Nodes that reach the same are one row: ${count(paths.rows.length, 'row')}.`);
  } else if (paths.rows[0]?.cells.length > 0) {
    all.push(`It reaches ${totalsText(paths.rows[0].totals)}.`);
  }
  const best = bestChange(page.data.advice);
  if (best) all.push(best);
  if (page.data.certainCells) {
    all.push(
      'The cluster is large: the tables leave out what is only possible, except cluster-admin. A page of one node has it.',
    );
  }
  if (page.data.certainOnly) {
    const left = page.data.leftOut ?? 0;
    all.push(
      left > 0
        ? `Only certain paths are shown. Possible ones are left out: ${count(left, page.data.allNodes ? 'node' : 'holding')}.`
        : 'Only certain paths are shown. No possible ones were left out.',
    );
  }
  if (page.data.notFollowed?.length > 0) all.push(`Not followed: ${page.data.notFollowedCount}.`);
  return all;
}

const rank = createGrid({
  id: 'ranking-grid',
  label: 'Ranking',
  pinned: 0,
  headHeight: 2.5,
  rowHeight: () => 2.75,
  columns: rankColumns,
  rows: () => filter.rows,
  selected: (row) => row === details.row,
  open: (row) => details.open(row, '', rank),
});

const matrix = createGrid({
  id: 'matrix-grid',
  label: 'What is reached in each namespace',
  pinned: 1,
  headHeight: 7.5,
  rowHeight: () => 2.75,
  columns: matrixColumns,
  rows: () => filter.rows,
  selected: (row) => row === details.row,
  open: (row, column) => details.open(row, column.namespace === undefined ? '' : column.title, matrix),
});

let filtered = null;

/** Shows what the address says. */
function apply() {
  const now = JSON.stringify(['q', 'namespace', 'certainty', 'technique'].map((key) => link.get(key)));
  if (now !== filtered) {
    filtered = now;
    filter.apply();
    rank.refresh();
    matrix.refresh();
    const nodes = filter.rows.reduce((sum, r) => sum + r.names.length, 0);
    fill(
      found,
      filter.isSet()
        ? `${count(nodes, page.data.allNodes ? 'node' : 'start')} in ${count(filter.rows.length, 'row')} of ${thousands(paths.rows.length)}`
        : count(paths.rows.length, 'row'),
    );
    page.say(found.textContent);
  }
  details.apply();
  rank.select();
  matrix.select();
}

const found = el('p', { class: 'found' });
const n = tally();
const noun = page.data.allNodes ? 'node' : 'start';

page.show(
  header('attack-paths', headline(n), sentences(n), page.data.state),
  missingNote(
    page.data.missing,
    'What is reached is at least what is shown. What is not shown as reached is unknown: it is not safe.',
  ),
  figures(`How many ${own}`, [
    ['Certain', n.Certain, agrees(n.Certain, own)],
    ['Possible', n.Possible, `may ${ownIt}`],
    n.controlPlane > 0 && ['Plane', n.controlPlane, agrees(n.controlPlane, 'run the control plane')],
    paths.unknown
      ? ['Unknown', n.Unknown, 'not known']
      : ['No', n.No, agrees(n.No, `do not ${ownIt}`)],
  ]),
  worstSection(),
  adviceSection(page.data.advice),
  filter.build(),
  section(
    'ranking',
    'Ranking',
    el(
      'p',
      { class: 'faint hint' },
      target
        ? `Who ${ofOne(own)} comes first. Select a row for its path.`
        : 'Who owns the cluster comes first, then who owns most nodes, accounts and secrets. “+2?” means that 2 more are possible. Select a row for its path.',
    ),
    found,
    rank.element,
    csvButton(),
  ),
  !target && section('matrix', 'What is reached in each namespace', matrixLegend(), matrix.element),
  notFollowedNote(page.data.notFollowed ?? [], page.data.notFollowedCount),
);
document.body.insertBefore(details.element, page.live);

link.start();
link.listeners.push(apply);
addEventListener('keydown', (e) => {
  if (e.key === 'Escape' && details.row && !e.defaultPrevented) details.close();
});
narrow.addEventListener('change', () => {
  page.main.inert = details.row !== null && narrow.matches;
  rank.refresh();
  matrix.refresh();
});
preparePrint();
apply();
performance.mark('ready');
document.documentElement.dataset.ready = '';
