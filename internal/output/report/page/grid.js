// A table of any size: only what is in view, and the cell with the focus, is in the document.
// It is a grid of the ARIA practices: one cell can be reached by Tab, and arrow keys move.

/**
 * o.label, o.id   name and id
 * o.pinned        how many columns on the left do not scroll
 * o.headHeight, o.rowHeight   in rem
 * o.columns()     columns: { title, width in rem (0: what is left), draw(row, cell, pixels) }
 * o.rows()        rows
 * o.selected(row) whether a row is shown in the details
 * o.open(row, column)  Enter, space or a click on a cell
 */
function createGrid(o) {
  const head = el('div', { class: 'grid-head', role: 'row', 'aria-rowindex': '1' });
  const body = el('div', { class: 'grid-body', role: 'rowgroup' });
  const element = el(
    'div',
    { class: 'grid', role: 'grid', id: o.id, 'aria-label': o.label },
    el('div', { class: 'grid-headgroup', role: 'rowgroup' }, head),
    body,
  );
  const shown = new Map(); // row elements by place, each with its cells by column
  let columns = [],
    rows = [],
    lefts = [],
    width = 0,
    rowHeight = 44,
    headHeight = 44;
  let active = { row: 0, column: 0 };
  let queued = false;

  function measure() {
    const unit = rem(),
      inside = element.clientWidth;
    rowHeight = Math.round(o.rowHeight() * unit);
    headHeight = Math.round(o.headHeight * unit);
    const fixed = columns.reduce((sum, c) => sum + c.width * unit, 0);
    const flexible = columns.filter((c) => c.width === 0).length;
    const rest = flexible ? Math.max((inside - fixed) / flexible, 9 * unit) : 0;
    lefts = [0];
    for (const c of columns) lefts.push(lefts.at(-1) + Math.round(c.width === 0 ? rest : c.width * unit));
    width = lefts.at(-1);
    head.style.height = `${headHeight}px`;
    head.style.width = body.style.width = `${Math.max(width, flexible ? inside : 0)}px`;
    body.style.height = `${rows.length * rowHeight}px`;
  }

  const pinnedWidth = () => lefts[Math.min(o.pinned, columns.length)] ?? 0;

  /** The first and the last place in view. */
  function inView() {
    const margin = 4;
    const firstRow = Math.max(0, Math.floor(element.scrollTop / rowHeight) - margin);
    const lastRow = Math.min(
      rows.length - 1,
      Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + margin,
    );
    const from = element.scrollLeft + pinnedWidth(),
      to = element.scrollLeft + element.clientWidth;
    const wanted = new Set();
    for (let i = 0; i < columns.length; i++) {
      if (i < o.pinned || (lefts[i + 1] > from - 200 && lefts[i] < to + 200)) wanted.add(i);
    }
    return { firstRow, lastRow, wanted };
  }

  function place(cell, i) {
    cell.style.width = `${lefts[i + 1] - lefts[i]}px`;
    cell.style.left = `${lefts[i]}px`;
    cell.classList.add(i < o.pinned ? 'pinned' : 'free');
  }

  function drawHead(wanted) {
    const cells = [...wanted].map((i) => {
      const cell = el(
        'div',
        { role: 'columnheader', 'aria-colindex': i + 1, class: `cell ${columns[i].class ?? ''}` },
        columns[i].head(),
      );
      place(cell, i);
      return cell;
    });
    head.replaceChildren(...cells);
  }

  function drawCell(row, r, i) {
    const column = columns[i],
      isActive = r === active.row && i === active.column;
    const cell = el('div', {
      role: column.isName ? 'rowheader' : 'gridcell',
      'aria-colindex': i + 1,
      tabindex: isActive ? '0' : '-1',
      class: `cell ${column.class ?? ''}`,
    });
    column.draw(row, cell, lefts[i + 1] - lefts[i]);
    place(cell, i);
    cell.addEventListener('click', () => {
      focus(r, i);
      o.open(row, column);
    });
    return cell;
  }

  function drawRow(r, wanted) {
    let entry = shown.get(r);
    if (!entry) {
      const element = el('div', { role: 'row', class: 'row', 'aria-rowindex': r + 2 });
      element.style.top = `${r * rowHeight}px`;
      element.style.height = `${rowHeight}px`;
      entry = { element, cells: new Map() };
      shown.set(r, entry);
      body.append(element);
    }
    const selected = o.selected(rows[r]);
    entry.element.classList.toggle('selected', selected);
    entry.element.setAttribute('aria-selected', selected);
    for (const [i, cell] of entry.cells) {
      if (!wanted.has(i) && !(r === active.row && i === active.column)) {
        cell.remove();
        entry.cells.delete(i);
      }
    }
    const needed = r === active.row ? new Set([...wanted, active.column]) : wanted;
    for (const i of [...needed].sort((a, b) => a - b)) {
      if (i >= columns.length || entry.cells.has(i)) continue;
      const cell = drawCell(rows[r], r, i);
      entry.cells.set(i, cell);
      const after = [...entry.cells.keys()].filter((k) => k > i).sort((a, b) => a - b)[0];
      entry.element.insertBefore(cell, after === undefined ? null : entry.cells.get(after));
    }
  }

  function draw() {
    queued = false;
    if (element.clientWidth === 0) return;
    const { firstRow, lastRow, wanted } = inView();
    drawHead(wanted);
    for (const [r, entry] of shown) {
      if ((r < firstRow || r > lastRow) && r !== active.row) {
        entry.element.remove();
        shown.delete(r);
      }
    }
    for (let r = firstRow; r <= lastRow; r++) drawRow(r, wanted);
    if (rows.length > 0 && (active.row < firstRow || active.row > lastRow)) drawRow(active.row, wanted);
  }

  function later() {
    if (!queued) {
      queued = true;
      requestAnimationFrame(draw);
    }
  }

  /** Draws everything anew. */
  function refresh() {
    const hadFocus = body.contains(document.activeElement);
    columns = o.columns();
    rows = o.rows();
    active = {
      row: Math.max(0, Math.min(active.row, rows.length - 1)),
      column: Math.max(0, Math.min(active.column, columns.length - 1)),
    };
    shown.clear();
    body.replaceChildren();
    element.setAttribute('aria-rowcount', rows.length + 1);
    element.setAttribute('aria-colcount', columns.length);
    measure();
    draw();
    if (hadFocus) focus(active.row, active.column);
  }

  /** Draws which row is selected. */
  function select() {
    for (const [r, entry] of shown) {
      const selected = o.selected(rows[r]);
      entry.element.classList.toggle('selected', selected);
      entry.element.setAttribute('aria-selected', selected);
    }
  }

  /** Scrolls so that a cell is in view, and gives it the focus. */
  function focus(r, i) {
    if (rows.length === 0) return;
    const before = shown.get(active.row)?.cells.get(active.column);
    if (before) before.tabIndex = -1;
    active = { row: Math.max(0, Math.min(r, rows.length - 1)), column: Math.max(0, Math.min(i, columns.length - 1)) };
    reveal(active.row, active.column);
    draw();
    const cell = shown.get(active.row).cells.get(active.column);
    cell.tabIndex = 0;
    cell.focus({ preventScroll: true });
  }

  function reveal(r, i) {
    const top = r * rowHeight,
      view = element.clientHeight - headHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + view) element.scrollTop = top + rowHeight - view;
    if (i === undefined || i < o.pinned) return;
    if (lefts[i] < element.scrollLeft + pinnedWidth()) element.scrollLeft = lefts[i] - pinnedWidth();
    else if (lefts[i + 1] > element.scrollLeft + element.clientWidth)
      element.scrollLeft = lefts[i + 1] - element.clientWidth;
  }

  function keydown(e) {
    if (!body.contains(e.target) || e.altKey || e.metaKey) return;
    const { row, column } = active,
      jump = Math.max(1, Math.floor(element.clientHeight / rowHeight) - 2);
    const all = e.ctrlKey;
    const moves = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + jump, column],
      PageUp: [row - jump, column],
      Home: [all ? 0 : row, 0],
      End: [all ? rows.length - 1 : row, columns.length - 1],
    };
    if (moves[e.key]) {
      focus(...moves[e.key]);
    } else if (e.key === 'Enter' || e.key === ' ') {
      o.open(rows[row], columns[column]);
    } else {
      return;
    }
    e.preventDefault();
  }

  element.addEventListener('scroll', later, { passive: true });
  element.addEventListener('keydown', keydown);
  new ResizeObserver(() => {
    if (element.clientWidth !== element.lastWidth) {
      element.lastWidth = element.clientWidth;
      refresh();
    }
  }).observe(element);

  return {
    element,
    refresh,
    select,
    /** Gives the focus back to the cell that had it. */
    focusActive: () => focus(active.row, active.column),
    /** Scrolls to a row. */
    show: (row) => {
      const r = rows.indexOf(row);
      if (r >= 0) {
        active.row = r;
        reveal(r);
        refresh();
      }
    },
  };
}
