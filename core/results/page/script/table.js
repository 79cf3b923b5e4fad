// Tables that are sorted by their headers.

const collator = new Intl.Collator('en', { numeric: true });

const cellText = (cell) => (typeof cell === 'object' && cell !== null ? cell.text : cell);

/** What a cell is sorted by: its figure, else its text. */
function sortKey(cell, isNumber) {
  if (typeof cell === 'object' && cell !== null && typeof cell.value === 'number')
    return cell.value;
  return isNumber ? null : cellText(cell);
}

function compareKeys(a, b) {
  return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(a, b);
}

/** The places of the rows by a column; what has no figure comes last either way. */
function sortedPlaces(rows, column, isNumber, direction) {
  const keys = rows.map((row) => sortKey(row[column], isNumber));
  return rows
    .map((_, place) => place)
    .sort((a, b) => {
      if (keys[a] === null || keys[b] === null)
        return (keys[a] === null) - (keys[b] === null) || a - b;
      return direction * compareKeys(keys[a], keys[b]) || a - b;
    });
}

function cellElement(cell, column, isFirst) {
  const { text, bold, node } = typeof cell === 'object' && cell !== null ? cell : { text: cell };
  const kind = [column.number && 'number', column.prose && 'prose'].filter(Boolean).join(' ');
  return element(
    isFirst ? 'th' : 'td',
    { class: kind || null, scope: isFirst ? 'row' : null },
    bold ? element('strong', {}, text) : (node ?? text),
  );
}

const arrows = { none: '↕', ascending: '↑', descending: '↓' };

function headerCell(column, onclick) {
  const arrow = element('span', { class: 'arrow', 'aria-hidden': 'true' }, arrows.none);
  const label = element(
    'button',
    { type: 'button', class: 'sort', onclick },
    column.title,
    '\u00a0',
    arrow,
  );
  return element(
    'th',
    { scope: 'col', 'aria-sort': 'none', class: column.number ? 'number' : null },
    label,
  );
}

function showDirection(header, order) {
  header.setAttribute('aria-sort', order);
  header.querySelector('.arrow').textContent = arrows[order];
}

/**
 * A table with a caption for those who hear it. `columns`: {title, number, prose}; cells are texts
 * or {text, value, bold, node}. A header's button sorts upwards, then downwards, then as it was.
 */
function sortableTable(caption, columns, rows) {
  const elements = rows.map((row) =>
    element(
      'tr',
      {},
      row.map((cell, i) => cellElement(cell, columns[i], i === 0)),
    ),
  );
  const body = element('tbody', {}, elements);
  let sorted = { column: -1, order: 'none' };
  const headers = columns.map((column, i) => headerCell(column, () => sortBy(i)));

  function sortBy(column) {
    const following = { none: 'ascending', ascending: 'descending', descending: 'none' };
    const order = following[sorted.column === column ? sorted.order : 'none'];
    headers.forEach((header, i) => showDirection(header, i === column ? order : 'none'));
    const places =
      order === 'none'
        ? rows.map((_, place) => place)
        : sortedPlaces(rows, column, columns[column].number, order === 'ascending' ? 1 : -1);
    body.append(...places.map((place) => elements[place]));
    sorted = { column, order };
    announce(
      order === 'none'
        ? 'In the order of the table'
        : `Sorted by ${columns[column].title}, ${order}`,
    );
  }

  const table = element(
    'table',
    {},
    element('caption', { class: 'for-screen-readers' }, caption),
    element('thead', {}, element('tr', {}, headers)),
    body,
  );
  const frame = element(
    'div',
    { class: 'table-frame', role: 'region', 'aria-label': caption, tabindex: 0 },
    table,
  );
  frame.rows = elements;
  return frame;
}
