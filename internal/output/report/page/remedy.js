// What to change so that a step is no longer there: a JSON patch for each object.

const sameObject = (a, b) => ['kind', 'namespace', 'name'].every((k) => (a.object[k] ?? '') === (b.object[k] ?? ''));

const operation = ({ op, path, value }) => (value === undefined ? { op, path } : { op, path, value });

/** "# ClusterRoleBinding deployer", and the patch of it. */
function patchText(changes) {
  const { apiVersion, object, of } = changes[0];
  const head = `# ${of === 'FeatureGate' ? 'feature gate' : object.kind} ${withNamespace(object)}${apiVersion ? ` (${apiVersion})` : ''}`;
  const whole = changes.find((c) => !c.path);
  if (whole) {
    return [head, whole.op === 'remove' ? 'delete it' : `create it:\n${JSON.stringify(whole.value, null, 2)}`].join(
      '\n',
    );
  }
  return `${head}\n[${changes.map((c) => JSON.stringify(operation(c))).join(',\n ')}]`;
}

/** The remedy of a step; null if it is not known. */
function remedyElement(remedy) {
  if (!remedy) return null;
  if (!remedy.changes?.length) return el('p', { class: 'granted' }, 'No change ends this step: ', remedy.none);
  const groups = [];
  for (const change of remedy.changes) {
    const last = groups.at(-1);
    if (last && sameObject(last[0], change)) last.push(change);
    else groups.push([change]);
  }
  return el(
    'details',
    { class: 'remedy' },
    el('summary', {}, 'Remedy: ', list(groups.map((g) => `change ${g[0].object.kind} ${withNamespace(g[0].object)}`))),
    remedy.disrupts && el('p', {}, remedy.disrupts),
    remedy.warning && el('p', {}, remedy.warning),
    remedy.otherRights > 0 && el('p', {}, `It takes ${count(remedy.otherRights, 'other right')}.`),
    el('pre', { tabindex: '0' }, lines(groups.map(patchText).join('\n\n'))),
  );
}
