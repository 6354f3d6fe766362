// What all pages have: heading, what could not be read, and the region that is read aloud.

/** Reads the data of the page: JSON, which is compressed if it is large. */
async function readData() {
  const element = document.getElementById('data'),
    text = element.textContent;
  if (element.dataset.packing === 'json') return JSON.parse(text);
  if (typeof DecompressionStream === 'undefined') {
    document.body.prepend(
      el('main', {}, el('p', {}, 'This browser is too old for this page: it cannot decompress the data.')),
    );
  }
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

const page = {
  data: await readData(),
  main: el('main', { id: 'main', tabindex: '-1' }),
  live: el('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' }),

  /** Tells screen readers something. */
  say(text) {
    if (this.live.textContent !== visible(text)) fill(this.live, text);
  },

  show(header, ...sections) {
    const skip = el(
      'a',
      {
        class: 'skip',
        href: '#main',
        on: {
          click: (e) => {
            e.preventDefault();
            this.main.focus();
          },
        },
      },
      'Skip to the results',
    );
    add(this.main, sections);
    document.body.prepend(skip, header, this.main, this.live);
  },
};

/** The page's header: a headline that is the answer, sentences, and where the data is from. */
function header(command, headline, sentences, state) {
  return el(
    'header',
    { class: 'top' },
    el('p', { class: 'command' }, `node-authorizer ${command}`),
    el('h1', {}, headline),
    sentences.map((s) => el('p', { class: 'lead' }, s)),
    el(
      'p',
      { class: 'source' },
      'From ',
      nameOf(state.origin),
      state.kubernetesVersion && `, by the rules of Kubernetes ${state.kubernetesVersion}`,
    ),
    madeBy(JSON.parse(document.getElementById('metadata').textContent)),
  );
}

/** How the page was made: when, by which version and command line, from which cluster, and what was not read. */
function madeBy(metadata) {
  if (!metadata) return null;
  const { context, serverVersion, objects } = metadata.cluster ?? {};
  const cluster = [
    context && `context ${context}`,
    serverVersion && `server ${serverVersion}`,
    objects && count(objects.nodes, 'node'),
    objects && count(objects.pods, 'pod'),
    objects && count(objects.serviceAccounts, 'service account'),
  ].filter(Boolean);
  const notRead = new Set((metadata.notRead ?? []).map((n) => n.resource || n.reason));
  const facts = [
    ['Made', `${metadata.date} by node-authorizer ${metadata.version}`],
    ['Command', el('code', {}, metadata.commandLine.split(' ').map((word) => [el('bdi', { class: 'argument' }, word), ' ']))],
    cluster.length > 0 && ['Cluster', nameOf(cluster.join(', '))],
    ['Not read', notRead.size > 0 ? nameOf([...notRead].join(', ')) : 'nothing that the result depends on'],
  ];
  return el(
    'dl',
    { class: 'rows source' },
    facts.filter(Boolean).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  );
}

/** The list of what could not be read; null if nothing is missing. */
function missingNote(missing, consequence) {
  if (missing.length === 0) return null;
  const shown = 5;
  const line = (m) =>
    el(
      'li',
      {},
      m.resource && el('strong', {}, nameOf(m.resource), ': '),
      nameOf(m.reason),
      m.remedy && [' ', el('strong', {}, 'Fix: '), nameOf(m.remedy)],
    );
  return el(
    'section',
    { class: 'missing', id: 'missing', 'aria-labelledby': 'missing-title' },
    el(
      'h2',
      { id: 'missing-title' },
      el('span', { class: 'sign', 'aria-hidden': 'true' }, '?'),
      'Not everything could be read',
    ),
    el('p', {}, consequence),
    el('ul', {}, missing.slice(0, shown).map(line)),
    missing.length > shown &&
      el(
        'details',
        {},
        el('summary', {}, `${thousands(missing.length - shown)} more`),
        el('ul', {}, missing.slice(shown).map(line)),
      ),
  );
}

/** The list of what is reached and may give more than the paths; null if there is none. */
function notFollowedNote(entries, counted) {
  if (entries.length === 0) return null;
  const shown = 5;
  const line = (e) =>
    el('li', {}, el('strong', {}, nameOf(e.what)), ' (', nameOf(e.where), '), granted by ', nameOf(e.grantedBy), `: ${e.why}`);
  return el(
    'section',
    { class: 'not-followed', id: 'not-followed', 'aria-labelledby': 'not-followed-title' },
    el('h2', { id: 'not-followed-title' }, `Not followed: ${counted}`),
    el('p', {}, 'The starts on this page come to hold these too. What these give is not followed: see the reason of each.'),
    el('ul', {}, entries.slice(0, shown).map(line)),
    entries.length > shown &&
      el(
        'details',
        {},
        el('summary', {}, `${thousands(entries.length - shown)} more`),
        el('ul', {}, entries.slice(shown).map(line)),
      ),
  );
}

/** Numbers with a word each. */
const figures = (label, entries) =>
  el(
    'ul',
    { class: 'figures', 'aria-label': label },
    entries
      .filter(Boolean)
      .map(([state, n, word]) => [n === 0 ? 'None' : state, n, word]) // 0 is neither danger nor safety
      .map(([state, n, word]) =>
        el(
          'li',
          { class: state.toLowerCase() },
          el('span', { class: 'sign', 'aria-hidden': 'true' }, signs[state] ?? ''),
          el('strong', {}, thousands(n)),
          ' ',
          word,
        ),
      ),
  );
