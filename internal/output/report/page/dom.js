// Making elements. Texts become text nodes: nothing is parsed as markup.

/**
 * Makes an element. Properties are attributes, except "on", which has listeners by event.
 * Children are elements, texts, or lists of these; what is null or false is left out.
 */
function el(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) e.addEventListener(event, listener);
    } else {
      e.setAttribute(name, value === true ? '' : value);
    }
  }
  add(e, children);
  return e;
}

function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

/** Replaces the children of an element. */
function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
}

/**
 * A name from the cluster: it breaks after one of / : . , - and elsewhere only where it is longer than the line, and is
 * isolated from the direction of the text around it.
 */
const nameOf = (text) =>
  el(
    'bdi',
    { class: 'name' },
    String(text)
      .split(/(?<=\w[/:.,@-])/)
      .map((part, i) => [i > 0 && el('wbr'), part]),
  );

/** A sign that is seen, and the words that are read aloud. */
const sign = (seen, words) => [el('span', { 'aria-hidden': 'true' }, seen), el('span', { class: 'unseen' }, words)];

/** Pixels of 1rem. */
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** A section with a heading. */
const section = (id, title, ...children) =>
  el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), children);

/** What could not be decided, is reached and so on has a sign, a word and a color. */
const signs = { Certain: '●', Possible: '◐', Unknown: '?', No: '○' };

const badge = (state, word) =>
  el(
    'span',
    { class: `badge ${state.toLowerCase()}` },
    el('span', { class: 'sign', 'aria-hidden': 'true' }, signs[state]),
    word,
  );

/** Text of several lines: line breaks are kept, other characters that cannot be seen are shown. */
const lines = (text) => text.split('\n').map((line, i) => [i > 0 && document.createTextNode('\n'), line]);
