// Holdings and steps of attack paths.

const kinds = [
  ['Node', 'node'],
  ['ServiceAccount', 'service account'],
  ['User', 'user'],
  ['Group', 'group'],
  ['Namespace', 'namespace'],
  ['Secret', 'secret'],
  ['Pod', 'pod'],
];
const nounOf = new Map(kinds);
const clusterWide = '(cluster)';

const withNamespace = (h) => (h.namespace ? `${h.namespace}/${h.name}` : h.name);

/** "secret shop/db" */
const holdingText = (h) =>
  h.kind === 'ClusterAdmin' ? 'cluster-admin' : `${nounOf.get(h.kind) ?? h.kind.toLowerCase()} ${withNamespace(h)}`;

const holdingElement = (h) =>
  h.kind === 'ClusterAdmin'
    ? el('b', {}, 'cluster-admin')
    : [nounOf.get(h.kind) ?? h.kind.toLowerCase(), ' ', el('b', {}, nameOf(withNamespace(h)))];

/** "7 secrets (2 possible)" */
const totalText = (kind, t) =>
  count(t.certain + t.possible, nounOf.get(kind)) +
  (t.possible === 0 ? '' : t.certain === 0 ? ' (possible)' : ` (${thousands(t.possible)} possible)`);

/** "3 nodes, 7 secrets (2 possible)" */
const totalsText = (totals) =>
  kinds
    .filter(([k]) => totals[k])
    .map(([k]) => totalText(k, totals[k]))
    .join(', ');

/** A step of the JSON form of results. */
const stepOfJSON = (s) => ({
  ...s,
  possible: s.certainty !== 'Certain',
  grantedBy: s.grantedBy && `${s.grantedBy.kind} "${withNamespace(s.grantedBy)}"`,
});

/** The code of a technique. Built-in ones lead to their section of the reference, and to MITRE ATT&CK. */
function techniqueElement(technique) {
  const code = el('code', {}, technique);
  const lookup = (table) => (table && Object.hasOwn(table, technique) ? table[technique] : undefined);
  const link = lookup(page.data.links);
  const attack = lookup(page.data.attack);
  const shown = link ? el('a', { href: link }, code) : code;
  if (!attack) return shown;
  const mitre = `https://attack.mitre.org/techniques/${attack.replace('.', '/')}/`;
  return [shown, ' (', el('a', { href: mitre }, `ATT&CK ${attack}`), ')'];
}

function stepList(steps) {
  return el(
    'ol',
    { class: 'steps' },
    steps.map((s) =>
      el(
        'li',
        { class: s.possible ? 'possible' : 'certain' },
        el(
          'p',
          { class: 'fromto' },
          holdingElement(s.from),
          el('span', { class: 'arrow' }, ' → '),
          holdingElement(s.to),
        ),
        s.impersonates && el('p', {}, 'acts as ', holdingElement(s.impersonates)),
        el('p', { class: 'because' }, s.because),
        el('p', { class: 'technique' }, techniqueElement(s.technique), ' ', page.data.techniques[s.technique]),
        s.grantedBy && el('p', { class: 'granted' }, 'granted by ', nameOf(s.grantedBy)),
        el(
          'p',
          {},
          badge(s.possible ? 'Possible' : 'Certain', s.possible ? 'possible' : 'certain'),
          s.dependsOn && el('span', { class: 'depends' }, `: depends on ${s.dependsOn}`),
        ),
        remedyElement(s.remedy),
      ),
    ),
  );
}
