// The page of diff: what a change lets nodes and service accounts reach.

const { data } = page;
const missing = data.missing ?? [];
const entries = [];
const opened = new Map();

const states = { Widened: 'Certain', NotWidened: 'No', Undecided: 'Unknown' };
const objectText = (o) => `${o.kind} ${withNamespace(o)}`;
const placeText = (p) => (p.file ? (p.line ? `${p.file}:${p.line}` : p.file) : '');

/** "node web-1", "3 nodes: web-1, web-2, …" */
function holdings(all, n, kind) {
  if (n === 1) return holdingElement(all[0]);
  const few = all.slice(0, 3);
  return [
    count(n, nounOf.get(kind) ?? kind),
    ': ',
    few.map((h, i) => [i > 0 && ', ', el('b', {}, nameOf(withNamespace(h)))]),
    n > few.length && ` and ${thousands(n - few.length)} more`,
  ];
}

/** What is not reached is unknown if not everything could be read. */
const stateBadge = (state) =>
  state === 'No' && missing.length > 0 ? badge('Unknown', 'not known') : badge(state, state.toLowerCase());

function row(r) {
  const body = el('div', { class: 'row-body' });
  const element = el(
    'details',
    { class: 'entry' },
    el(
      'summary',
      {},
      holdings(r.starts, r.startCount, r.startKind),
      el('span', { class: 'arrow' }, ' → '),
      holdings(r.reached, r.reachedCount, r.kind),
      ' ',
      stateBadge(r.before),
      el('span', { class: 'arrow' }, ' → '),
      stateBadge(r.after),
    ),
    body,
  );
  fillWhenOpened(element, body, () => rowBody(r));
  opened.set(r.id, element);
  return element;
}

function rowBody(r) {
  const names = (title, all, n) =>
    n > 1 &&
    el(
      'details',
      {},
      el('summary', {}, title),
      el(
        'ul',
        { class: 'namelist' },
        all.map((h) => el('li', {}, nameOf(withNamespace(h)))),
      ),
    );
  const places = r.places ?? [];
  return [
    names(`All ${count(r.startCount, nounOf.get(r.startKind) ?? 'start')} that reach it`, r.starts, r.startCount),
    names(`All ${count(r.reachedCount, nounOf.get(r.kind) ?? 'holding')} that are reached`, r.reached, r.reachedCount),
    r.reason && el('p', {}, `Reason: ${r.reason}`),
    stepList(r.path.map(stepOfJSON)),
    places.length > 0 && el('p', {}, 'Because of the change:'),
    places.length > 0 &&
      el(
        'ul',
        { class: 'places' },
        places.map((p) =>
          el(
            'li',
            {},
            `step ${p.step}: `,
            p.action && `${p.action.toLowerCase()} `,
            nameOf(objectText(p.object)),
            placeText(p) && [', ', el('code', {}, nameOf(placeText(p)))],
          ),
        ),
      ),
  ];
}

/** What is reached in one state and not in the other. */
function rows(id, title, all, none) {
  const list = el('div', { class: 'entries' });
  const part = section(
    id,
    title,
    all.length === 0
      ? el('p', {}, none)
      : withMore(
          list,
          all,
          (r) => {
            const element = row(r);
            const words = [...r.starts, ...r.reached].map(holdingText).join(' ');
            entries.push({ element, text: `${words} ${r.path.map((s) => s.technique).join(' ')}` });
            return element;
          },
          'entry',
        ),
  );
  return part;
}

const nothing = missing.length > 0 ? 'Nothing is seen, but not everything could be read.' : 'Nothing.';
const widened = rows('widened', 'What is reached now', data.widened, nothing);
const narrowed = rows('narrowed', 'What is no longer reached', data.narrowed, 'Nothing.');
const known =
  data.suppressed?.length > 0 && rows('known', 'Known findings, which the baseline has', data.suppressed, '');
const expected =
  data.expected?.length > 0 && rows('expected', 'What is reached more, and is no finding', data.expected, '');
const changes = data.changes ?? [];
const notes = data.notes ?? [];

page.show(
  header(
    'diff',
    upperFirst(data.headline),
    data.totalLines.map((l) => `${upperFirst(l)}.`),
    data.after,
  ),
  missingNote(missing, 'What is not shown as widened is unknown: it is not safe.'),
  el(
    'p',
    { class: 'verdict' },
    badge(
      states[data.verdict],
      { Widened: 'widened', NotWidened: 'not widened', Undecided: 'undecided' }[data.verdict],
    ),
  ),
  changes.length > 0 &&
    section(
      'changes',
      'Changes',
      table(
        'Changes',
        ['Change', 'Object', 'Place', 'Why'],
        changes.map((c) =>
          tableRow([
            c.action,
            nameOf(objectText(c.object)),
            placeText(c) && el('code', {}, nameOf(placeText(c))),
            [
              c.because || (c.action === 'Removed' ? 'named by --without' : 'in a file of --with'),
              c.objects > 1 && `; ${count(c.objects, 'object')}`,
            ],
          ]),
        ),
      ),
    ),
  searchField(entries, 'entry', 'node, account, secret …'),
  widened,
  narrowed,
  known,
  expected,
  notes.length > 0 &&
    section(
      'notes',
      'Notes',
      el(
        'ul',
        {},
        notes.map((n) => el('li', {}, n)),
      ),
    ),
);
linkedDetails(opened);
start();
