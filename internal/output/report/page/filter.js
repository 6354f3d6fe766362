// Search and filters. A cell is kept if all filters fit it; a row, if a cell or its path to
// cluster-admin is.

const filter = {
  fields: {},
  rows: [],
  namespaces: [],
  kept: new Uint8Array(0),

  build() {
    const field = (key, label, control) => {
      this.fields[key] = control;
      control.id = `filter-${key}`;
      return el('div', { class: `field field-${key}` }, el('label', { for: control.id }, label), control);
    };
    const select = (key, label, options) =>
      field(
        key,
        label,
        el(
          'select',
          { on: { change: (e) => link.set({ [key]: e.target.value }) } },
          options.map(([value, word]) => el('option', { value }, word)),
        ),
      );
    const names = [...new Set(paths.cells.map((c) => c.namespace))].sort();
    const search = el('input', {
      type: 'search',
      placeholder: 'node, secret, account …',
      autocomplete: 'off',
      spellcheck: 'false',
      on: { input: (e) => link.set({ q: e.target.value }) },
    });
    return el(
      'form',
      {
        class: 'filters',
        role: 'search',
        'aria-label': 'Search and filters',
        on: { submit: (e) => e.preventDefault() },
      },
      field('q', 'Search', search),
      select('namespace', 'Namespace', [
        ['', 'all'],
        ...names.map((n) => [n || clusterWide, n || `${clusterWide} – in no namespace`]),
      ]),
      select('certainty', 'Certainty', [
        ['', 'certain and possible'],
        ['certain', 'certain only'],
        ['possible', 'possible only'],
      ]),
      select('technique', 'Technique', [
        ['', 'all'],
        ...Object.keys(page.data.techniques)
          .sort()
          .map((t) => [t, t]),
      ]),
      el(
        'button',
        {
          type: 'button',
          class: 'plain',
          on: { click: () => link.set({ q: '', namespace: '', certainty: '', technique: '' }) },
        },
        'Clear',
      ),
    );
  },

  /** Puts the values of the address into the fields, and selects rows and namespaces. */
  apply() {
    for (const [key, control] of Object.entries(this.fields)) {
      if (control.value !== link.get(key)) control.value = link.get(key);
    }
    const wanted = {
      q: link.get('q').trim().toLowerCase(),
      namespace: link.get('namespace'),
      certainty: link.get('certainty'),
      technique: link.get('technique'),
    };
    this.byTechnique = this.pathsWith(wanted.technique);
    this.names = this.holdingsWith(wanted.q);
    // Three states: 0 no, 1 fits but for the search, 2 fits.
    this.kept = Uint8Array.from(paths.cells, (c) => this.cellFits(c, wanted));
    const named = (r) => wanted.q === '' || r.names.some((n) => n.toLowerCase().includes(wanted.q));
    this.rows = paths.rows.filter((r) => {
      const enough = named(r) ? 1 : 2;
      return (
        (enough === 1 && !wanted.namespace && !wanted.certainty && !wanted.technique) ||
        this.adminFits(r, wanted, enough) ||
        r.cells.some((c) => this.kept[c.place] >= enough)
      );
    });
    this.namespaces = this.columns(wanted);
  },

  pathsWith(technique) {
    const { data } = paths;
    if (!technique) return null;
    const steps = data.steps.map((s) => data.strings[s[0]] === technique);
    return data.paths.map((p) => p.some((s) => steps[s]));
  },

  /** For each holding whether its name has the text. */
  holdingsWith(text) {
    const { data } = paths;
    if (!text) return null;
    const strings = data.strings.map((s) => s.toLowerCase().includes(text));
    return data.holdings.map(
      ([, namespace, name]) =>
        strings[name] ||
        strings[namespace] ||
        (text.includes('/') && `${data.strings[namespace]}/${data.strings[name]}`.toLowerCase().includes(text)),
    );
  },

  cellFits(cell, { namespace, certainty }) {
    if (namespace && namespace !== (cell.namespace || clusterWide)) return 0;
    if ((certainty === 'certain' && cell.certain === 0) || (certainty === 'possible' && cell.possible === 0)) return 0;
    let technique = this.byTechnique === null,
      name = this.names === null;
    for (let i = 0; i < cell.listed.length && !(technique && name); i += 3) {
      name ||= this.names[cell.listed[i]];
      technique ||= this.byTechnique[cell.listed[i + 1]];
    }
    if (!technique) return 0;
    return name ? 2 : 1;
  },

  adminFits(row, { q, namespace, certainty, technique }, enough) {
    if (row.admin === 'No' || namespace) return false;
    if ((certainty === 'certain') !== (row.admin === 'Certain') && certainty) return false;
    if (technique && !this.byTechnique[row.path]) return false;
    return enough === 1 || goal.toLowerCase().includes(q);
  },

  /** The namespaces of cells that are kept: those that most rows reach come first. */
  columns({ namespace }) {
    const reachedBy = new Map();
    for (const r of this.rows) {
      for (const c of r.cells) {
        if (this.kept[c.place]) reachedBy.set(c.namespace, (reachedBy.get(c.namespace) ?? 0) + r.names.length);
      }
    }
    if (reachedBy.size === 0 && this.rows.some((r) => r.admin === 'Certain')) reachedBy.set('', 0); // these own all
    return [...reachedBy.keys()]
      .filter((n) => !namespace || namespace === (n || clusterWide))
      .sort((a, b) => (a === '') - (b === '') || reachedBy.get(b) - reachedBy.get(a) || (a < b ? -1 : 1));
  },

  isSet() {
    return Object.keys(this.fields).some((key) => link.get(key) !== '');
  },
};
