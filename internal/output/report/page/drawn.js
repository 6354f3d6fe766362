// The worst path, drawn: a box for each holding, and for each step an arrow with its technique and binding.

const lineHeight = 18;

const svg = (tag, properties, ...children) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties)) e.setAttribute(name, value);
  add(e, children);
  return e;
};

/** The lines of a text, which ends a line between words or after one of / : . - and elsewhere only in longer words. */
function wrapped(text, length) {
  const all = [''];
  for (const word of visible(text).match(/[^\s/:.-]*[\s/:.-]+|[^\s/:.-]+/g) ?? []) {
    for (const part of word.match(new RegExp(`.{1,${length}}`, 'gu'))) {
      if (all.at(-1) && (all.at(-1) + part).trimEnd().length > length) all.push('');
      all[all.length - 1] += part;
    }
  }
  return all.map((line) => line.trimEnd());
}

/** A drawing of steps, from top to bottom. */
function drawSteps(steps, width) {
  const length = Math.floor((width - 44) / 8);
  const parts = [];
  let y = 1;
  const textLines = (texts, x, bold) =>
    texts.map((text, i) => {
      y += lineHeight;
      return svg('text', { x, y: y - 5, class: bold === true || i < bold ? 'strong' : '' }, text);
    });
  const box = (holding) => {
    const top = y;
    y += 6;
    const texts = textLines(wrapped(holdingText(holding), length), 12, true);
    y += 6;
    const kind = holding.kind === 'ClusterAdmin' ? 'box owned' : 'box';
    parts.push(svg('rect', { x: 1, y: top, width: width - 2, height: y - top, rx: 6, class: kind }), texts);
  };
  const arrow = (step) => {
    const top = y;
    y += 8;
    const technique = wrapped(step.technique + (step.possible ? ' (possible)' : ''), length);
    const because = wrapped(step.grantedBy ? `granted by ${step.grantedBy}` : step.because, length);
    const texts = textLines([...technique, ...because], 36, technique.length);
    y += 8;
    const line = `M18 ${top}V${y - 1}m-5-7 5 7 5-7`;
    parts.push(svg('path', { d: line, class: step.possible ? 'edge possible' : 'edge' }), texts);
  };
  box(steps[0].from);
  for (const step of steps) {
    arrow(step);
    box(step.to);
  }
  const words = [steps[0].from, ...steps.map((s) => s.to)].map(holdingText).join(' → ');
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${y + 1}`, width, height: y + 1, class: 'drawn', role: 'img', 'aria-label': visible(words) },
    parts,
  );
}

/** The path of the first row of the ranking that has one; null if none has. */
function worstSection() {
  const row = paths.rows.find((r) => r.path && !r.controlPlane) ?? paths.rows.find((r) => r.path);
  if (!row) return null;
  const steps = paths.steps(row.path);
  const drawing = el('div', {});
  const draw = () => fill(drawing, drawSteps(steps, narrow.matches ? 320 : 720));
  narrow.addEventListener('change', draw);
  draw();
  return section(
    'worst',
    'The worst path',
    el(
      'p',
      {},
      nameOf(row.names[0]),
      row.names.length > 1 && ` and ${count(row.names.length - 1, `more ${page.data.allNodes ? 'node' : 'start'}`)}`,
      ` ${row.admin === 'Certain' ? agrees(row.names.length, own) : `may ${own}`} in ${count(steps.length, 'step')}. `,
      el('a', { href: `#row=${encodeURIComponent(row.names[0])}` }, 'Each step with its reason and remedy'),
    ),
    drawing,
  );
}
