// Words and numbers.

const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

const plural = (noun) => (noun.endsWith('y') ? noun.slice(0, -1) + 'ies' : noun + 's');

/** "1 node", "1,200 nodes" */
const count = (n, noun) => `${thousands(n)} ${n === 1 ? noun : plural(noun)}`;

/** "a, b and c" */
const list = (words) => (words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`);

const upperFirst = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Names may contain characters that cannot be seen or that change the direction of the text around
// them. They are shown by their numbers.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

const visible = (text) => String(text).replace(unseen, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
