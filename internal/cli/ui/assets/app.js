// What the server sends is HTML in which every text of others is escaped; it is parsed here and nowhere else.
'use strict';

const policy = window.trustedTypes
  ? trustedTypes.createPolicy('htcd', { createHTML: (html) => html })
  : { createHTML: (html) => html };
const base = document.body.dataset.base;
const byId = (id) => document.getElementById(id);

function parse(html) {
  const t = document.createElement('template');
  t.innerHTML = policy.createHTML(html);
  return t.content;
}

function say(text, bad) {
  const live = byId('live');
  if (live.textContent === text) return;
  live.textContent = text;
  live.className = bad ? 'bad' : '';
}

// stream opens a stream of events while the page can be seen: a browser has few connections for one server.
function stream(address, handlers) {
  let source = null;
  let over = false;
  const close = () => { if (source) source.close(); source = null; };
  const open = () => {
    if (source || over || document.hidden) return;
    source = new EventSource(address());
    source.addEventListener('state', (e) => say(e.data || 'live', e.data !== ''));
    source.onerror = () => say('not connected: is htcd ui still running?', true);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (e) => handle(e.data));
    }
    source.addEventListener('end', () => { over = true; close(); say('', false); });
    source.addEventListener('reload', () => { close(); location.reload(); });
  };
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
}

// A list: rows come one by one, are filtered by their text and sorted by a column. Only those in sight are in the document, and some around
// them: thousands cost no more than a few.
function list(table) {
  const rows = byId('rows');
  const filter = byId('filter');
  const none = byId('none');
  const empty = none.textContent;
  const around = 8;
  const all = new Map(); // by id: {e, id, text, key}
  let order = []; // all of them, sorted
  let fit = []; // those that the filter shows
  let at = table.dataset.at;
  let by = 'created';
  let down = true;

  const key = (e) => (['name', 'ns', 'phase'].includes(by) ? e.querySelector('.' + by).textContent.trim() : Number(e.dataset[by]));
  const before = (a, b) => (a.key === b.key ? a.id < b.id : (a.key < b.key) !== down);
  const find = (entry) => {
    let low = 0;
    let high = order.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (before(order[mid], entry)) low = mid + 1; else high = mid;
    }
    return low;
  };
  const take = (e) => ({ e, id: e.id, text: e.textContent.toLowerCase(), key: key(e) });
  const put = (entry) => { all.set(entry.id, entry); order.splice(find(entry), 0, entry); };
  const drop = (entry) => { all.delete(entry.id); order.splice(find(entry), 1); };
  const sort = () => {
    for (const entry of order) entry.key = key(entry.e);
    order.sort((a, b) => (before(a, b) ? -1 : 1));
  };

  // show puts the rows in sight into the document.
  const show = () => {
    const height = rows.firstElementChild ? rows.firstElementChild.offsetHeight : 50;
    const top = rows.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(fit.length, Math.floor(-top / height)) - around);
    const last = Math.min(fit.length, Math.ceil((innerHeight - top) / height) + around);
    let next = rows.firstChild;
    for (let i = first; i < last; i++) {
      const { e } = fit[i];
      e.setAttribute('aria-rowindex', i + 2);
      if (e === next) next = next.nextSibling; else rows.insertBefore(e, next);
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
    rows.style.paddingTop = `${first * height}px`;
    rows.style.paddingBottom = `${Math.max(0, fit.length - last) * height}px`;
  };
  let asked = false;
  const soon = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; show(); });
  };
  const count = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    fit = words.length ? order.filter((entry) => words.every((w) => entry.text.includes(w))) : order;
    byId('shown').textContent = fit.length === order.length ? `${order.length} shown` : `${fit.length} of ${order.length} shown`;
    none.textContent = order.length ? 'None of them has all these words.' : empty;
    none.hidden = fit.length > 0;
    table.setAttribute('aria-rowcount', fit.length + 1);
    soon();
  };

  for (const e of [...rows.children]) put(take(e));
  filter.form.addEventListener('submit', (e) => e.preventDefault());
  filter.addEventListener('input', count);
  for (const button of table.querySelectorAll('button[data-sort]')) {
    button.addEventListener('click', () => {
      down = by === button.dataset.sort ? !down : ['created', 'failed'].includes(button.dataset.sort);
      by = button.dataset.sort;
      for (const other of table.querySelectorAll('[aria-sort]')) other.setAttribute('aria-sort', 'none');
      button.parentElement.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      sort();
      count();
    });
  }
  addEventListener('scroll', soon, { passive: true });
  addEventListener('resize', soon);
  count();

  stream(() => `${base}/live/list/${table.dataset.kind}?since=${at}&boot=${table.dataset.boot}`, {
    at: (n) => { at = n; },
    trouble: (html) => byId('trouble').replaceChildren(parse(html)),
    gone: (ids) => {
      for (const id of JSON.parse(ids)) {
        const entry = all.get(id);
        if (entry) drop(entry);
      }
      count();
    },
    rows: (html) => {
      for (const fresh of [...parse(html).children]) {
        const old = all.get(fresh.id);
        if (old) drop(old);
        if (old && old.e.isConnected) { // so that the focus stays
          Idiomorph.morph(old.e, fresh, { morphStyle: 'outerHTML' });
          put(take(old.e));
        } else {
          put(take(fresh));
        }
      }
      count();
    },
  });
}

const table = byId('list');
if (table) list(table);

// A page about one object: its main part comes again when it has changed.
const glyphs = { d: ['done', '✓'], f: ['failed', '✗'], r: ['running', '▶'], h: ['held', '‖'], i: ['idle', '○'], w: ['waiting', '·'], u: ['futile', '–'], '.': ['unknown', ' '] };

// draw makes the cells of a grid be what its text says, and touches only those that differ.
function draw(grid) {
  const cells = grid.dataset.cells;
  const columns = grid.dataset.columns ? JSON.parse(grid.dataset.columns) : [];
  const from = Number(grid.dataset.from);
  const shape = [cells.length, from, grid.dataset.link, columns.length].join();
  if (grid.shape !== shape) {
    grid.shape = shape;
    grid.drawn = '';
    grid.replaceChildren();
    grid.style.setProperty('--columns', columns.length);
    grid.all = [];
    let group = null;
    const per = columns.length || 100;
    for (let i = 0; i < cells.length; i++) {
      if (i % per === 0) {
        group = document.createElement('div');
        group.className = 'group';
        group.setAttribute('role', 'row');
        if (columns.length) {
          const label = document.createElement('span');
          label.setAttribute('role', 'rowheader');
          label.textContent = from + i / per;
          group.append(label);
        }
        grid.append(group);
      }
      const a = document.createElement('a');
      a.setAttribute('role', 'gridcell');
      a.tabIndex = i === 0 ? 0 : -1;
      a.href = columns.length
        ? `${grid.dataset.link}&sequence=${from + Math.floor(i / per)}&step=${encodeURIComponent(columns[i % per])}#one`
        : `${grid.dataset.link}${from + i}#one`;
      grid.all.push(a);
      group.append(a);
    }
    if (columns.length) {
      const head = document.createElement('div');
      head.className = 'group heads';
      head.setAttribute('role', 'row');
      head.append(document.createElement('span'));
      for (const c of columns) {
        const h = document.createElement('span');
        h.setAttribute('role', 'columnheader');
        h.textContent = c;
        head.append(h);
      }
      grid.prepend(head);
    }
  }
  for (let i = 0; i < cells.length; i++) {
    if (cells[i] === grid.drawn[i]) continue;
    const [state, glyph] = glyphs[cells[i]] || glyphs['.'];
    const name = columns.length ? `${columns[i % columns.length]} ${from + Math.floor(i / columns.length)}` : from + i;
    const a = grid.all[i];
    a.className = `c-${state}`;
    a.textContent = glyph;
    a.setAttribute('aria-label', `${name}: ${state}`);
    a.title = `${name}: ${state}`;
  }
  grid.drawn = cells;
}

// walk moves the focus in a grid by the arrow keys.
function walk(event) {
  const grid = event.target.closest('.cells');
  if (!grid || !grid.all) return;
  const at = grid.all.indexOf(event.target);
  if (at < 0) return;
  const top = event.target.offsetTop;
  let width = 1;
  for (let i = 0; i < grid.all.length && grid.all[i].offsetTop === grid.all[0].offsetTop; i++) width = i + 1;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + width, ArrowUp: at - width, Home: 0, End: grid.all.length - 1 }[event.key];
  if (to === undefined || !grid.all[to] || top === undefined) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  grid.all[to].tabIndex = 0;
  grid.all[to].focus();
}

// near marks the edges of the node that is pointed at, or that has the focus.
function near(event) {
  const node = event.target.closest('.graph a[data-node]');
  if (!node) return;
  const svg = node.closest('svg');
  svg.querySelectorAll('.near').forEach((edge) => edge.classList.remove('near'));
  const n = node.dataset.node;
  svg.querySelectorAll(`[data-from="${n}"], [data-to~="${n}"]`).forEach((edge) => edge.classList.add('near'));
}

function detail(main) {
  const grids = () => main.querySelectorAll('.cells').forEach(draw);
  grids();
  main.addEventListener('keydown', walk);
  main.addEventListener('mouseover', near);
  main.addEventListener('focusin', near);
  const morph = (html) => {
    const fresh = document.createElement('div');
    fresh.append(parse(html));
    Idiomorph.morph(main, fresh, {
      morphStyle: 'innerHTML',
      callbacks: {
        // What is unfolded stays so; a grid keeps its cells, which draw changes.
        beforeAttributeUpdated: (name, node) => !(name === 'open' && node.tagName === 'DETAILS'),
        beforeNodeMorphed: (old, now) => {
          if (old.nodeType !== 1 || !old.classList.contains('cells') || !now.dataset) return true;
          for (const key of Object.keys(now.dataset)) old.dataset[key] = now.dataset[key];
          return false;
        },
      },
    });
    grids();
  };
  stream(() => main.dataset.live, { page: morph, gone: morph });
}

// A log: text is appended as it comes; what is far back is dropped.
async function follow(log) {
  const most = 400; // pieces
  const state = byId('state');
  try {
    const answer = await fetch(log.dataset.text);
    if (!answer.ok) throw new Error(await answer.text());
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    state.textContent = 'live';
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const node = document.createElement('span');
      node.textContent = value;
      log.append(node);
      while (log.childNodes.length > most) log.firstChild.remove();
      if (byId('follow').checked) log.scrollTop = log.scrollHeight;
    }
    state.textContent = log.childNodes.length ? 'this is all of it' : 'it is empty';
  } catch (e) {
    state.textContent = `interrupted: ${e.message}`;
  }
}

const main = byId('main');
if (main.dataset.live) detail(main);
const log = byId('log');
if (log) follow(log);
