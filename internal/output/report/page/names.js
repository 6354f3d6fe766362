// Names in a place of fixed width: of a longer name, the part is shown that no other name has.

const pen = document.createElement('canvas').getContext('2d');

/** The width of a text in bold, in pixels. */
function widthOf(text) {
  const { fontSize, fontFamily } = getComputedStyle(document.body);
  pen.font = `600 ${fontSize} ${fontFamily}`;
  return pen.measureText(visible(text)).width;
}

/** Whether a name begins with the first piece, ends with the last one, and has the others between them. */
function hasPieces(name, pieces) {
  const [first, last] = [pieces[0], pieces.at(-1)];
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  const inner = name.slice(first.length, name.length - last.length);
  return pieces.length < 3 || inner.includes(pieces[1]);
}

/** Parts of a name, the preferred ones first: its end, its beginning, its middle, and beginning with end. */
function* partsOf(name) {
  const cuts = [...name.matchAll(/[/:.,@ -]/g)].map((m) => m.index + 1);
  const back = cuts.toReversed();
  for (const a of cuts) yield ['', name.slice(a)];
  for (const b of back) yield [name.slice(0, b), ''];
  for (const a of cuts) for (const b of back) if (b > a) yield ['', name.slice(a, b), ''];
  for (const a of cuts) for (const b of cuts) if (b > a) yield [name.slice(0, a), name.slice(b)];
}

const shortened = new Map();

/** The first part of a name that fits into a width and tells it from the others; the narrowest one if none fits. */
function shorten(name, others, width) {
  let [best, least] = [name, widthOf(name)];
  if (least <= width) return name;
  for (const pieces of partsOf(name)) {
    const text = pieces.join('…'),
      needed = widthOf(text);
    if (needed >= least || others.some((other) => other !== name && hasPieces(other, pieces))) continue;
    if (needed <= width) return text;
    [best, least] = [text, needed];
  }
  return best;
}

/** A name as it fits into a width. Others are the same for all names of a kind, so that a name keeps its form. */
function shortName(name, others, width) {
  const key = `${Math.floor(width)} ${name}`;
  if (!shortened.has(key)) shortened.set(key, shorten(name, others, width));
  return shortened.get(key);
}

/** The element of a name in a place of a width. The whole name is its title, and is read aloud. */
function shortNameOf(name, others, width) {
  const short = shortName(name, others, width);
  return el('bdi', { class: 'name', title: visible(name) }, short === name ? name : sign(short, name));
}
