// Reading the data of attack paths: lists in which everything is once, see attackpaths.go.

const paths = {
  /** Decodes everything that is needed at once. Steps are decoded when they are shown. */
  read(data) {
    this.data = data;
    this.unknown = data.missing.length > 0;
    this.cells = data.cells.map((c, place) => this.cell(c, place));
    this.rows = data.rows.map((r, place) => this.row(r, place));
    this.names = this.rows.flatMap((r) => r.names);
    this.namespaces = [...new Set(this.cells.map((c) => c.namespace || clusterWide))];
    this.rank();
  },

  cell([namespace, kind, certain, possible, from, ...listed], place) {
    const s = this.data.strings;
    return { place, namespace: s[namespace], kind: s[kind], certain, possible, from, listed };
  },

  row(r, place) {
    const cells = [];
    let at = 0;
    for (const difference of r.cells ?? []) {
      at += difference;
      cells.push(this.cells[at]);
    }
    const totals = {};
    for (const c of cells) {
      const t = (totals[c.kind] ??= { certain: 0, possible: 0 });
      t.certain += c.certain;
      t.possible += c.possible;
    }
    const state = r.clusterAdmin === 'No' && this.unknown ? 'Unknown' : r.clusterAdmin;
    return {
      place,
      names: r.names,
      admin: r.clusterAdmin,
      state,
      controlPlane: r.controlPlane ?? false,
      path: r.path ?? 0,
      cells,
      totals,
    };
  },

  /** Who owns the cluster comes first, then who owns most nodes, accounts and secrets. */
  rank() {
    const worth = { Certain: 3, Possible: 2, Unknown: 1, No: 0 };
    const size = (r, kind) => (r.totals[kind] ? r.totals[kind].certain + r.totals[kind].possible / 2 : 0);
    const keys = new Map(
      this.rows.map((r) => [
        r,
        [
          worth[r.state],
          r.controlPlane ? 0 : 1,
          ...['Node', 'ServiceAccount', 'Secret', 'Namespace', 'Pod'].map((k) => size(r, k)),
          r.names.length,
        ],
      ]),
    );
    this.rows.sort((a, b) => {
      const x = keys.get(a),
        y = keys.get(b);
      for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return y[i] - x[i];
      return a.place - b.place;
    });
    this.rows.forEach((r, i) => {
      r.rank = i + 1;
    });
  },

  holding(place) {
    const [kind, namespace, name] = this.data.holdings[place].map((i) => this.data.strings[i]);
    return { kind, namespace, name };
  },

  step(place) {
    const [technique, from, to, impersonates, because, grantedBy, dependsOn, possible, remedy] = this.data.steps[place];
    const s = this.data.strings;
    return {
      technique: s[technique],
      from: this.holding(from),
      to: this.holding(to),
      impersonates: impersonates < 0 ? null : this.holding(impersonates),
      because: s[because],
      grantedBy: s[grantedBy],
      dependsOn: s[dependsOn],
      possible: possible === 1,
      remedy: remedy < 0 ? null : this.data.remedies[remedy],
    };
  },

  steps(path) {
    return this.data.paths[path].map((s) => this.step(s));
  },

  /** What a cell lists: holding, path, and whether it is only possible. */
  listed(cell) {
    const all = [];
    for (let i = 0; i < cell.listed.length; i += 3) {
      all.push({ holding: this.holding(cell.listed[i]), path: cell.listed[i + 1], possible: cell.listed[i + 2] === 1 });
    }
    return all;
  },
};

/** What the paths lead to: cluster-admin, unless the page is about another target. */
const target = page.data.target ?? '';
const goal = target || 'cluster-admin';
const own = target ? `reach ${target}` : 'own the cluster';
const ownIt = target ? 'reach it' : 'own it';

/** The verb with which a phrase begins, for one or several. */
const singular = { own: 'owns', reach: 'reaches', do: 'does', run: 'runs' };
const ofOne = (phrase) => phrase.replace(/^\w+/, (verb) => singular[verb]);
const agrees = (n, phrase) => (n === 1 ? ofOne(phrase) : phrase);

const stateWords = {
  Certain: ofOne(own),
  Possible: `may ${own}`,
  Unknown: 'not known',
  No: `does not ${own}`,
};
