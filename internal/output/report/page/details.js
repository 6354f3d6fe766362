// The details of one row: how it owns the cluster, and what it reaches in each namespace.

const details = {
  element: el('aside', { id: 'details', hidden: true, 'aria-labelledby': 'details-title' }),
  row: null,
  /** The grid that has the focus again when the details are closed. */
  origin: null,

  /** Shows what the address names. */
  apply() {
    const name = link.get('row');
    const row = name ? paths.rows.find((r) => r.names.includes(name)) : undefined;
    const shownAs = row ? `${row.place} ${link.get('in')} ${link.get('what')}` : '';
    if (shownAs === this.shownAs) return;
    this.shownAs = shownAs;
    this.row = row ?? null;
    this.element.hidden = !row;
    document.body.classList.toggle('with-details', Boolean(row));
    page.main.inert = Boolean(row) && narrow.matches;
    if (row) this.show(row, name);
  },

  open(row, namespace, origin) {
    this.origin = origin;
    link.set({ row: rowName(row).first, in: namespace ?? '', what: '' }, { back: true });
    this.element.querySelector('h2')?.focus();
  },

  close() {
    if (!this.row) return;
    link.set({ row: '', in: '', what: '' }, { back: true });
    this.origin?.focusActive();
  },

  show(row, name) {
    const others = row.names.filter((n) => n !== name);
    fill(
      this.element,
      el(
        'div',
        { class: 'details-head' },
        el('h2', { id: 'details-title', tabindex: '-1' }, nameOf(name)),
        el(
          'button',
          { type: 'button', class: 'close', 'aria-label': 'Close the details', on: { click: () => this.close() } },
          '×',
        ),
      ),
      el(
        'p',
        {},
        adminBadge(row),
        ` ${stateWords[row.state]}`,
        row.controlPlane && ', because it runs the control plane',
      ),
      others.length > 0 &&
        el(
          'details',
          { class: 'others' },
          el('summary', {}, `${count(others.length, 'other node')} reach${others.length === 1 ? 'es' : ''} the same`),
          el(
            'ul',
            { class: 'namelist' },
            others.slice(0, 500).map((n) => el('li', {}, nameOf(n))),
            others.length > 500 && el('li', {}, `and ${thousands(others.length - 500)} more; the search finds them`),
          ),
        ),
      this.admin(row),
      this.reached(row),
    );
    const open = this.element.querySelector('[data-shown]');
    if (open) open.scrollIntoView({ block: 'nearest' });
    else this.element.scrollTop = 0;
  },

  admin(row) {
    if (!row.path) return null;
    const steps = paths.steps(row.path);
    return el(
      'section',
      { 'aria-labelledby': 'admin-title' },
      el('h3', { id: 'admin-title' }, `The way to ${goal}, ${count(steps.length, 'step')}`),
      row.names.length > 1 && el('p', { class: 'faint' }, 'As from ', nameOf(row.names[0]), '.'),
      stepList(steps),
    );
  },

  reached(row) {
    if (target) return null;
    if (row.cells.length === 0) {
      if (row.admin === 'Certain')
        return el('p', {}, 'Cluster-admin owns everything, so that what else is reached is not listed.');
      return el(
        'p',
        {},
        paths.unknown ? 'What it reaches is not known: not everything could be read.' : 'It reaches nothing else.',
      );
    }
    const byNamespace = new Map();
    for (const c of row.cells) {
      if (!byNamespace.has(c.namespace)) byNamespace.set(c.namespace, []);
      byNamespace.get(c.namespace).push(c);
    }
    const chosen = link.get('in');
    const order = [...byNamespace.keys()].sort(
      (a, b) => ((b || clusterWide) === chosen) - ((a || clusterWide) === chosen),
    );
    const shown = 100;
    const items = (names) => names.map((n) => this.namespace(n, byNamespace.get(n), (n || clusterWide) === chosen));
    const more = el('div', {});
    const rest = order.slice(shown);
    return el(
      'section',
      { 'aria-labelledby': 'reached-title' },
      el('h3', { id: 'reached-title' }, `Reaches ${totalsText(row.totals)}`),
      items(order.slice(0, shown)),
      more,
      rest.length > 0 &&
        el(
          'button',
          {
            type: 'button',
            class: 'plain',
            on: {
              click: (e) => {
                e.target.remove();
                add(more, items(rest));
              },
            },
          },
          `Show ${count(rest.length, 'more namespace')}`,
        ),
    );
  },

  /** A namespace that can be opened. Its content is made when it is. */
  namespace(name, cells, isOpen) {
    const body = el('div', {});
    const fillBody = () => {
      if (!body.firstChild)
        add(
          body,
          cells.map((c) => this.cell(c)),
        );
    };
    const element = el(
      'details',
      { class: 'namespace', 'data-shown': isOpen, on: { toggle: fillBody } },
      el(
        'summary',
        {},
        nameOf(name || 'in no namespace'),
        el('span', { class: 'faint' }, ' ', cells.map((c) => totalText(c.kind, c)).join(', ')),
      ),
      body,
    );
    if (isOpen) {
      fillBody();
      element.open = true;
    }
    return element;
  },

  cell(c) {
    const noun = nounOf.get(c.kind),
      listed = paths.listed(c);
    if (listed.length === 0) {
      return [
        el('h4', {}, upperFirst(totalText(c.kind, c))),
        el(
          'p',
          { class: 'faint' },
          'Pods are only counted here, for the first node of the row: name the node instead of --all-nodes to list them.',
        ),
      ];
    }
    const left = c.certain + c.possible - listed.length;
    return [
      el('h4', {}, upperFirst(totalText(c.kind, c))),
      el(
        'ul',
        { class: 'holdings' },
        listed.map((x) => el('li', {}, this.holding(x, c))),
      ),
      left > 0 && el('p', { class: 'faint' }, `and ${count(left, `more ${noun}`)}, not listed`),
    ];
  },

  holding(x, cell) {
    const title = [
      nameOf(x.holding.name),
      ' ',
      badge(x.possible ? 'Possible' : 'Certain', x.possible ? 'possible' : 'certain'),
    ];
    const what = `${x.holding.kind}/${withNamespace(x.holding)}`;
    const body = el('div', {});
    const fillBody = () => {
      if (body.firstChild) return;
      const from = paths.holding(cell.from);
      if (page.data.allNodes && !this.row.names.includes(from.name)) {
        add(body, [el('p', { class: 'faint' }, 'The same way from ', holdingElement(from), ':')]);
      }
      body.append(stepList(paths.steps(x.path)));
    };
    const element = el(
      'details',
      {
        class: 'holding',
        on: {
          toggle: (e) => {
            fillBody();
            if (e.target.open && link.get('what') !== what) {
              this.shownAs = `${this.row.place} ${cell.namespace || clusterWide} ${what}`;
              link.set({ in: cell.namespace || clusterWide, what });
            }
          },
        },
      },
      el('summary', {}, title),
      body,
    );
    if (link.get('what') === what) {
      fillBody();
      element.open = true;
      element.setAttribute('data-shown', '');
    }
    return element;
  },
};
