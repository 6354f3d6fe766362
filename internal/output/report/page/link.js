// The fragment of the page's address says what is shown, so that a link to it can be sent.

const link = {
  values: new Map(),
  listeners: [],

  get(key) {
    return this.values.get(key) ?? '';
  },

  /** Changes values. A step that one wants to go back from is one in the history of the browser. */
  set(changes, { back = false } = {}) {
    for (const [key, value] of Object.entries(changes)) {
      if (value === '' || value === null) this.values.delete(key);
      else this.values.set(key, value);
    }
    const fragment = '#' + new URLSearchParams([...this.values]).toString();
    if (fragment !== (location.hash || '#')) {
      if (back) history.pushState(null, '', fragment);
      else history.replaceState(null, '', fragment);
    }
    this.changed();
  },

  read() {
    this.values = new Map(new URLSearchParams(location.hash.slice(1)));
  },

  changed() {
    for (const listener of this.listeners) listener();
  },

  start() {
    this.read();
    const again = () => {
      this.read();
      this.changed();
    };
    addEventListener('popstate', again);
    addEventListener('hashchange', again);
  },
};
