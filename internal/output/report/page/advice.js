// What to change so that nodes no longer own the cluster.

const helps = (c) =>
  c.certain > 0 ? `${count(c.certain, 'node')} no longer certainly` : `${count(c.entirely, 'node')} no longer at all`;

/** One sentence about the change that helps most; null if there is none. */
function bestChange(advice) {
  const best = advice?.alone[0];
  if (!best) return null;
  const word = best.certain > 0 ? 'certainly' : 'possibly';
  return [
    'The one change that helps most: ',
    el('strong', {}, best.text),
    `. Then ${count(best.certain || best.entirely, 'node')} no longer ${word} ${own}.`,
  ];
}

function adviceSection(advice) {
  if (!advice) return null;
  const parts = [];
  if (paths.unknown) {
    parts.push(
      el(
        'p',
        { class: 'unknown' },
        'Not everything could be read: there may be other paths, which these changes do not end.',
      ),
    );
  }
  if (advice.nodes.certain + advice.nodes.possible === 0) {
    if (!paths.unknown) parts.push(el('p', {}, `Nothing: no node outside the control plane ${ofOne(own)}.`));
    return section('advice', 'What to change', parts);
  }
  parts.push(advice.alone.length === 0 ? el('p', {}, 'No change helps a node alone.') : aloneTable(advice));
  if (advice.notEvaluated)
    parts.push(
      el('p', {}, `Not evaluated: ${count(advice.notEvaluated, 'more change')} on the paths of fewer nodes.`),
    );
  if (advice.set.length > 0) {
    const goal = advice.remaining
      ? 'these changes do the most that such changes can do'
      : `these changes make sure that no node outside the control plane ${page.data.certainOnly ? 'certainly ' : ''}${ofOne(own)}`;
    parts.push(
      el('h3', {}, 'Together'),
      el('p', {}, `Made together, ${goal} (a small set, not the smallest):`),
      el(
        'ol',
        { class: 'changes' },
        advice.set.map((c) => el('li', {}, nameOf(c.text))),
      ),
    );
  }
  if (advice.remaining) {
    parts.push(
      el(
        'p',
        {},
        `Then ${count(advice.left.certain, 'node')} still certainly ${agrees(advice.left.certain, own)}, and ${thousands(advice.left.possible)} possibly. A path that remains:`,
      ),
      stepList(paths.steps(advice.remaining)),
    );
  }
  if (advice.commands) parts.push(commandsOf(advice.commands));
  if (advice.placing) parts.push(placingOf(advice.placing));
  return section('advice', 'What to change', parts);
}

/** The script that makes the changes. What is copied is what is seen. */
function commandsOf(commands) {
  const script = el('pre', { tabindex: '0' }, lines(commands));
  const copy = () => {
    getSelection().selectAllChildren(script); // to copy by hand, where the browser refuses
    navigator.clipboard?.writeText(script.textContent).then(
      () => page.say('Copied'),
      () => page.say('Selected'),
    );
  };
  return el(
    'details',
    {},
    el('summary', {}, 'Commands'),
    el('button', { type: 'button', class: 'plain', on: { click: copy } }, 'Copy the commands'),
    script,
  );
}

/** Where to run the pods that give the target, as the text has it. */
function placingOf(placing) {
  const [nodes, label] = [placing.nodes.length, `${placing.taint.key}=${placing.taint.value ?? ''}`];
  const line = (w) =>
    el(
      'li',
      {},
      nameOf(`${w.object.kind} ${withNamespace(w.object)}`),
      ` on ${count(w.nodes, 'node')}, through `,
      holdingElement(w.through),
      w.why ? `: not placed: ${w.why}` : ': in the pool',
    );
  return [
    el('h3', {}, `Where to run the pods that give ${goal}`),
    nodes === 0
      ? el('p', {}, 'None of these pods can be placed:')
      : el(
          'p',
          {},
          `${thousands(nodes)} of the ${count(placing.before, 'node')} with these pods can be a pool: `,
          placing.nodes.map((n, i) => [i > 0 && ', ', nameOf(n)]),
          `. Then ${count(placing.certain, 'node')} no longer certainly ${agrees(placing.certain, own)}, and `,
          `${thousands(placing.entirely)} not at all. The other changes are not needed for that. `,
          `The nodes get the label and the taint ${label}; the commands are above.`,
        ),
    el('ul', { class: 'changes' }, [...placing.workloads, ...(placing.unplaced ?? [])].map(line)),
  ];
}

/** The changes that help alone: the first ones are shown, the others on demand. */
function aloneTable(advice) {
  const first = 5;
  const table = (changes) =>
    el(
      'table',
      { class: 'alone' },
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          el('th', { scope: 'col' }, 'One change'),
          el('th', { scope: 'col', class: 'number' }, 'Nodes no longer certain'),
          el('th', { scope: 'col', class: 'number' }, 'Not at all'),
        ),
      ),
      el(
        'tbody',
        {},
        changes.map((c) =>
          el(
            'tr',
            {},
            el('td', {}, nameOf(c.text)),
            el('td', { class: 'number' }, thousands(c.certain)),
            el('td', { class: 'number' }, thousands(c.entirely)),
          ),
        ),
      ),
    );
  const more = advice.alone.slice(first);
  return [
    table(advice.alone.slice(0, first)),
    more.length > 0 && el('details', {}, el('summary', {}, `${count(more.length, 'more change')}`), table(more)),
  ];
}
