// The page of doctor: findings, predictions, and the checks that could not be made.

const { data } = page;
const missing = data.missing ?? [];
const entries = [];
const { summary } = data;

const severities = [
  ['error', 'errors', 'Certain', 'Errors'],
  ['warning', 'warnings', 'Possible', 'Warnings'],
  ['info', 'infos', 'No', 'Notes'],
];

function headline() {
  const parts = [
    ['errors', 'error'],
    ['warnings', 'warning'],
    ['infos', 'note'],
  ]
    .filter(([k]) => summary[k] > 0)
    .map(([k, noun]) => count(summary[k], noun));
  if (parts.length > 0) return upperFirst(list(parts));
  if (summary.undetermined === 0) return `Nothing found in ${count(summary.checks, 'check')}`;
  return summary.undetermined === summary.checks
    ? 'Nothing could be checked'
    : `Nothing found in ${thousands(summary.checks - summary.undetermined)} of ${count(summary.checks, 'check')}`;
}

const placeText = (p) =>
  [
    p.file && (p.line ? `${p.file}:${p.line}` : p.file),
    p.object,
    p.key && (p.keyLine && !p.file ? `${p.key}, line ${p.keyLine}` : p.key),
  ]
    .filter(Boolean)
    .join(': ');

function findingEntry(f, state) {
  const multiline = (f.remedy ?? '').includes('\n');
  return el(
    'article',
    { class: `finding ${state.toLowerCase()}` },
    el('h3', {}, badge(state, f.severity), ' ', f.message),
    el(
      'p',
      { class: 'faint' },
      el('code', {}, f.code),
      placeText(f.place) && [' at ', nameOf(placeText(f.place))],
      f.subject && [', about ', nameOf(f.subject)],
    ),
    f.consequence && el('p', {}, upperFirst(f.consequence), '.'),
    f.remedy &&
      el(
        'div',
        { class: 'remedy' },
        el('strong', {}, 'Fix: '),
        multiline ? el('pre', { tabindex: '0' }, lines(f.remedy)) : f.remedy,
      ),
  );
}

const outcomes = { yes: ['No', 'yes'], no: ['Certain', 'no'], unknown: ['Unknown', 'not known'] };
const outcome = (o) => {
  const [state, word] = outcomes[o.value] ?? outcomes.unknown;
  return [badge(state, word), o.value !== 'yes' && o.why && el('span', { class: 'faint' }, ' ', o.why)];
};

const groups = severities.map(([severity, , state, title]) => {
  const all = data.findings.filter((f) => f.severity === severity);
  if (all.length === 0) return null;
  const part = section(`severity-${severity}`, `${title} (${thousands(all.length)})`);
  const entriesOf = el('div', { class: 'entries' });
  add(part, [
    withMore(
      entriesOf,
      all,
      (f) => {
        const element = findingEntry(f, state);
        entries.push({
          element,
          text: [f.code, f.message, f.consequence, f.remedy, f.subject, placeText(f.place)].join(' '),
          group: part,
        });
        return element;
      },
      'finding',
    ),
  ]);
  return part;
});

/** Findings that do not count, with the reason. */
const suppressed = data.suppressed ?? [];
const knownGroup = () => {
  if (suppressed.length === 0) return null;
  const part = section('known', `Known findings, which do not count (${thousands(suppressed.length)})`);
  add(part, [
    withMore(
      el('div', { class: 'entries' }),
      suppressed,
      (f) => {
        const element = findingEntry(f, 'No');
        add(element, [
          el('p', {}, el('strong', {}, 'Accepted: '), f.reason, f.expires && ` (until ${f.expires})`),
        ]);
        entries.push({
          element,
          text: [f.code, f.message, f.reason, f.subject, placeText(f.place)].join(' '),
          group: part,
        });
        return element;
      },
      'finding',
    ),
  ]);
  return part;
};

const probeOutcomes = {
  holds: ['No', 'holds'],
  doesNotHold: ['Certain', 'does not hold'],
  undetermined: ['Unknown', 'not known'],
};

/** A request that a probe sent, with its answer. */
const sentItem = (s) =>
  el(
    'li',
    {},
    el('code', {}, `${s.method} ${s.path}`),
    s.anonymous ? ' without credentials' : s.as && [' as ', nameOf(s.as)],
    s.body && [': ', s.body],
    ' → ',
    [s.status, s.answer].filter(Boolean).join(' '),
  );

function probeRow(p) {
  const [state, word] = probeOutcomes[p.outcome] ?? probeOutcomes.undetermined;
  return tableRow([
    el('code', {}, p.id),
    p.question,
    badge(state, word),
    [
      p.why,
      p.remedy && [' ', el('strong', {}, 'Fix: '), p.remedy],
      el(
        'details',
        {},
        el('summary', {}, count(p.sent.length, 'request')),
        el('ul', {}, p.sent.map(sentItem)),
      ),
    ],
  ]);
}

const probes = data.probes ?? [];
const roles = data.roles.filter((r) => r.purpose !== 'others');
const made = summary.checks - summary.undetermined;

page.show(
  header(
    'doctor',
    headline(),
    [
      summary.undetermined > 0
        ? `${count(summary.undetermined, 'check')} of ${thousands(summary.checks)} could not be made: what ${summary.undetermined === 1 ? 'it' : 'they'} would find is not known.`
        : `All ${count(made, 'check')} were made.`,
      summary.leftOut > 0 && `${count(summary.leftOut, 'check')} left out (--checks).`,
      suppressed.length > 0 && `${count(suppressed.length, 'known finding')} not counted (--baseline).`,
    ].filter(Boolean),
    { origin: data.origin },
  ),
  missingNote(missing, 'Checks that lack something were not made. That nothing is found says nothing about them.'),
  figures('Findings', [
    ['Certain', summary.errors, summary.errors === 1 ? 'error' : 'errors'],
    ['Possible', summary.warnings, summary.warnings === 1 ? 'warning' : 'warnings'],
    summary.undetermined > 0 && ['Unknown', summary.undetermined, 'not checked'],
    ['No', made, made === 1 ? 'check made' : 'checks made'],
  ]),
  data.findings.length + suppressed.length > 0 && searchField(entries, 'finding', 'code, object, file …'),
  groups,
  knownGroup(),
  roles.length > 0 &&
    section(
      'roles',
      'What happens to nodes',
      table(
        'Predictions',
        ['Role', 'Mapped to', 'Registers', 'Ready', 'Logs and exec'],
        roles.map((r) =>
          tableRow([
            nameOf(r.arn || '(no ARN)'),
            [
              nameOf(r.username),
              (r.groups ?? []).length > 0 && [' in ', r.groups.map((g, i) => [i > 0 && ', ', nameOf(g)])],
            ],
            outcome(r.registers),
            outcome(r.ready),
            outcome(r.serving),
          ]),
        ),
      ),
    ),
  probes.length > 0 &&
    section(
      'probes',
      'What the API server answered',
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
          c.status === 'made' ? badge('No', 'made') : badge('Unknown', 'not made'),
          thousands(c.findings),
          [...new Set((c.missing ?? []).map((m) => m.resource))].join(', '),
        ]),
      ),
    ),
  ),
);
start();
