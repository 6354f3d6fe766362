// The page of reach: what the credential of one node may read, write and mint.

const { data } = page;
const missing = data.missing ?? [];
const later = data.attackPaths?.missing ?? [];
const entries = [];
const unknown = missing.length > 0;

const names = (n) => (n ? `${n}` : '(cluster)');
const mayText = (m) => `${m.verbs.join(', ')}${m.subresource ? ` ${m.subresource}` : ''}`;
const conditionsOf = (all) => [...new Set(all.flatMap((m) => (m.conditions ?? []).map((c) => c.requires)))];
const objectOf = (o) => `${o.kind.toLowerCase()} ${withNamespace(o)}`;

/** "secret shop/db ← pod shop/api, which names it in spec.volumes" */
function pathList(paths) {
  return el(
    'ul',
    { class: 'paths' },
    paths.map((path) =>
      el(
        'li',
        {},
        path.map((e, i) => [
          i === 0 && nameOf(objectOf(e.from)),
          ' ← ',
          nameOf(objectOf(e.to)),
          e.field !== 'spec.nodeName' && el('code', {}, ` ${e.field}`),
        ]),
      ),
    ),
  );
}

function audiences(o) {
  if (o.kind !== 'ServiceAccount') return null;
  const all = o.anyAudience ? ['any'] : (o.audiences ?? []).map((a) => a || '(API server)');
  return el('p', {}, 'Tokens for the audiences: ', all.length > 0 ? all.join(', ') : 'none');
}

function object(o) {
  const body = el('div', { class: 'row-body' });
  const element = el(
    'details',
    { class: 'entry' },
    el('summary', {}, nameOf(withNamespace(o)), el('span', { class: 'faint' }, ` ${count(o.paths.length, 'path')}`)),
    body,
  );
  fillWhenOpened(element, body, () => {
    const conditions = conditionsOf(o.may);
    return [
      el('p', {}, 'May ', o.may.map(mayText).join('; ')),
      audiences(o),
      conditions.length > 0 &&
        el(
          'details',
          {},
          el('summary', {}, 'NodeRestriction has conditions for writes'),
          el(
            'ul',
            {},
            conditions.map((c) => el('li', {}, nameOf(c))),
          ),
        ),
      pathList(o.paths),
    ];
  });
  return element;
}

/** The objects of one kind. */
function kindSection(kind, objects) {
  const list = el('div', { class: 'entries' });
  const part = section(`kind-${kind}`, count(objects.length, kind));
  add(part, [
    withMore(
      list,
      objects,
      (o) => {
        const element = object(o);
        entries.push({ element, text: `${objectOf(o)}`, group: part });
        opened.set(objectOf(o), element);
        return element;
      },
      'object',
    ),
  ]);
  return part;
}

function totals() {
  const kindNames = [...new Set(data.objects.map((o) => o.kind))];
  const namespaces = new Map();
  for (const t of data.totals) {
    const name = names(t.namespace);
    if (!namespaces.has(name)) namespaces.set(name, {});
    namespaces.get(name)[t.kind] = t.objects;
  }
  return table(
    'Objects by namespace',
    ['Namespace', ...kindNames],
    [...namespaces].map(([name, counts]) =>
      el(
        'tr',
        { role: 'row' },
        el('th', { scope: 'row', role: 'rowheader' }, nameOf(name)),
        kindNames.map((k) =>
          el(
            'td',
            { role: 'cell', class: counts[k] ? '' : 'faint' },
            counts[k] ? thousands(counts[k]) : unknown ? '?' : '–',
          ),
        ),
      ),
    ),
  );
}

const opened = new Map();
const byKind = new Map();
for (const o of data.objects) {
  if (!byKind.has(o.kind)) byKind.set(o.kind, []);
  byKind.get(o.kind).push(o);
}
const sections = [...byKind].map(([kind, objects]) => kindSection(kind, objects));

const ruleText = (r) => [...(r.resources ?? []), ...(r.nonResourceURLs ?? [])].join(', ');
const total = data.attackPaths;
const admin = total && (total.clusterAdmin !== 'No' ? total.clusterAdmin : data.attackPathsUnknown ? 'Unknown' : 'No');
const adminWords = {
  Certain: 'it owns the cluster',
  Possible: 'it may own the cluster',
  Unknown: 'it is not known whether it owns the cluster',
  No: 'it does not own the cluster',
};

page.show(
  header(
    'reach',
    `Node ${data.node} reaches ${count(data.objects.length, 'object')}${unknown ? ', or more' : ''}`,
    [
      !total && 'What this leads to in the end was not computed: reach --in-total does, or attack-paths.',
      total && [
        'In the end, through everything that it can read and act as, ',
        adminWords[admin],
        admin === 'Certain' || total.counts === undefined
          ? '.'
          : ['; it reaches ', totalsText(Object.fromEntries(total.counts.map((c) => [c.kind, c]))), '.'],
        ' The command attack-paths shows the way.',
      ],
    ].filter(Boolean),
    data.state,
  ),
  missingNote([...missing, ...later], 'The node reaches at least what is shown. It is not known what else it reaches.'),
  data.objects.length > 0
    ? section('totals', 'By namespace', totals())
    : el(
        'p',
        {},
        unknown
          ? 'Nothing is seen to be bound or attached to the node, but not everything could be read.'
          : 'Nothing is bound or attached to the node.',
      ),
  searchField(entries, 'object', 'namespace, name, kind …'),
  sections,
  data.standing.length > 0 &&
    section(
      'standing',
      'Independent of its pods',
      table(
        'What every node may do',
        ['Verbs', 'Resource', 'Rule'],
        data.standing.map((g) =>
          tableRow([
            g.verbs.join(', '),
            [
              nameOf(g.resource + (g.subresource ? `/${g.subresource}` : '') + (g.group ? `.${g.group}` : '')),
              g.name && [' ', nameOf(g.name)],
            ],
            [
              g.rule,
              g.ownName && ', its own only',
              (g.conditions ?? []).length > 0 &&
                el(
                  'details',
                  {},
                  el('summary', {}, 'if it passes NodeRestriction'),
                  el(
                    'ul',
                    {},
                    g.conditions.map((c) => el('li', {}, nameOf(c.requires))),
                  ),
                ),
            ],
          ]),
        ),
      ),
    ),
  data.rbac === null
    ? section(
        'rbac',
        'RBAC',
        el('p', { class: 'unknown' }, 'The state has no roles and bindings: it is not known what RBAC adds.'),
      )
    : data.rbac.length > 0 &&
        section(
          'rbac',
          `RBAC adds ${count(data.rbac.length, 'rule')}`,
          table(
            'Rules of RBAC',
            ['Namespace', 'Verbs', 'Resource', 'Granted by'],
            data.rbac.map((g) =>
              tableRow([
                nameOf(names(g.namespace)),
                g.rule.verbs.join(', '),
                ruleText(g.rule),
                [g.binding.kind, ' ', nameOf(withNamespace(g.binding)), ' to ', nameOf(g.subject)],
              ]),
            ),
          ),
        ),
);
linkedDetails(opened);
start();
