// The page of doctor: findings, predictions, and the checks that could not be made. What the rows say is
// made by the program, as for the text.

const { data } = page;
const missing = data.missing ?? [];
const known = data.known ?? [];
const others = data.others ?? [];
const probes = data.probes ?? [];
const entries = [];
const { summary } = data;

const severities = [
  ['error', 'Certain', 'Errors'],
  ['warning', 'Possible', 'Warnings'],
  ['info', 'No', 'Notes'],
];

const sentence = (text) => `${upperFirst(text)}.`;

function findingEntry(f, state) {
  const multiline = (f.remedy ?? '').includes('\n');
  return el(
    'article',
    { class: `finding ${state.toLowerCase()}` },
    el('h3', {}, badge(state, f.severity), ' ', nameOf(f.message)),
    el('p', { class: 'faint' }, el('a', { href: f.link }, el('code', {}, f.code)), f.at && [' at ', nameOf(f.at)]),
    f.consequence && el('p', {}, sentence(f.consequence)),
    f.remedy &&
      el(
        'div',
        { class: 'remedy' },
        el('strong', {}, 'Fix: '),
        multiline ? el('pre', { tabindex: '0' }, lines(f.remedy)) : f.remedy,
      ),
    f.accepted && el('p', {}, el('strong', {}, 'Accepted: '), f.accepted),
  );
}

/** A section with findings, each of which can be searched. */
function findingsGroup(id, title, all, state) {
  if (all.length === 0) return null;
  const part = section(id, `${title} (${thousands(all.length)})`);
  const make = (f) => {
    const element = findingEntry(f, state);
    entries.push({
      element,
      text: [f.code, f.message, f.consequence, f.remedy, f.accepted, f.at].join(' '),
      group: part,
    });
    return element;
  };
  add(part, [withMore(el('div', { class: 'entries' }), all, make, 'finding')]);
  return part;
}

const groups = severities.map(([severity, state, title]) =>
  findingsGroup(
    `severity-${severity}`,
    title,
    data.findings.filter((f) => f.severity === severity),
    state,
  ),
);
const knownGroup = findingsGroup('known', 'Known findings, which do not count', known, 'No');

const values = { yes: 'No', no: 'Certain', unknown: 'Unknown' };

const roleEntry = (r) =>
  el(
    'article',
    { class: 'role' },
    el('h3', {}, nameOf(r.title)),
    el(
      'dl',
      { class: 'rows' },
      r.rows.map((row) =>
        el(
          'div',
          {},
          el('dt', {}, row.name),
          el('dd', {}, row.value && [badge(values[row.value], row.value), ' '], nameOf(row.text)),
        ),
      ),
    ),
  );

const outcomes = { holds: 'No', doesNotHold: 'Certain', undetermined: 'Unknown' };

const probeRow = (p) =>
  tableRow([
    el('code', {}, p.id),
    p.question,
    badge(outcomes[p.outcome], p.words),
    [
      p.why,
      el(
        'details',
        {},
        el('summary', {}, count(p.sent.length, 'request')),
        el(
          'ul',
          {},
          p.sent.map((line) => el('li', {}, el('code', {}, line))),
        ),
      ),
    ],
  ]);

const made = summary.checks - summary.undetermined;
const [headline, ...further] = data.headline;

page.show(
  header('doctor', upperFirst(headline), further.map(sentence), { origin: data.origin }),
  missingNote(missing, 'Checks that lack something were not made. That nothing is found says nothing about them.'),
  figures('Findings', [
    ['Certain', summary.errors, summary.errors === 1 ? 'error' : 'errors'],
    ['Possible', summary.warnings, summary.warnings === 1 ? 'warning' : 'warnings'],
    summary.undetermined > 0 && ['Unknown', summary.undetermined, 'not checked'],
    ['No', made, made === 1 ? 'check made' : 'checks made'],
  ]),
  data.findings.length + known.length > 0 && searchField(entries, 'finding', 'code, object, file …'),
  groups,
  knownGroup,
  data.explained &&
    el(
      'p',
      { class: 'faint' },
      data.explained.split(/(https:\S+)/).map((part, i) => (i % 2 ? el('a', { href: part }, nameOf(part)) : part)),
    ),
  data.roles.length > 0 &&
    section(
      'roles',
      'What happens to nodes',
      withMore(el('div', { class: 'entries' }), data.roles, roleEntry, 'role'),
    ),
  others.length > 0 &&
    section(
      'others',
      data.othersTitle,
      table(
        'Roles',
        ['Role', 'Username', 'Groups'],
        others.map((cells) => tableRow(cells.map(nameOf))),
      ),
    ),
  probes.length > 0 &&
    section(
      'probes',
      'Probes: what the API server was asked; nothing was changed',
      table('Probes', ['Probe', 'Question', 'Outcome', 'Why'], probes.map(probeRow)),
    ),
  section(
    'checks',
    'Checks',
    table(
      'Checks',
      ['Check', 'About', 'Made', 'Findings', 'Lacks'],
      data.checks.map((c) =>
        tableRow([
          el('code', {}, c.id),
          c.title,
          c.made ? badge('No', 'made') : badge('Unknown', 'not made'),
          thousands(c.findings),
          c.lacks,
        ]),
      ),
    ),
  ),
);
start();
