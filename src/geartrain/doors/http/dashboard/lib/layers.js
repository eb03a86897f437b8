// Where the nodes of a graph are drawn: in layers, each behind all that it comes after, with few crossings.
//
// Nodes have a *layer* and a *position* within it, in steps of one node; the caller turns these into pixels. Edges that
// span several layers run through points in the layers between, which take up room as nodes do.

const SWEEPS = 12;
const PATIENCE = 4; // sweeps without fewer crossings
const MOST_POINTS = 4000; // with more, edges run straight through
const SLIM = 0.3; // the room of a point between layers, in nodes

/** `parents[i]`: the nodes that node i comes after; no circles. Returns `{ layers, places, edges, breadth }`. */
export function layOut(parents) {
  const layerOf = longestPaths(parents);
  const graph = { nodes: parents.map((_, id) => newNode(id, layerOf[id], 1)) };
  const edges = parents.flatMap((before, id) => before.map((parent) => ({ from: parent, to: id, points: [] })));
  const points = edges.reduce((sum, { from, to }) => sum + layerOf[to] - layerOf[from] - 1, 0);
  for (const edge of edges) connect(graph, edge, points <= MOST_POINTS);
  const layers = [];
  for (const node of graph.nodes) (layers[node.layer] ??= []).push(node);
  order(layers);
  position(layers);
  const least = Math.min(...graph.nodes.map((node) => node.at - node.width / 2));
  const most = Math.max(...graph.nodes.map((node) => node.at + node.width / 2));
  const place = (node) => ({ layer: node.layer, at: node.at - least });
  return {
    layers: layers.map((layer) => layer.filter((node) => node.id !== null).map((node) => node.id)),
    places: parents.map((_, id) => place(graph.nodes[id])),
    edges: edges.map(({ from, to, points: between }) => ({ from, to, points: between.map(place) })),
    breadth: most - least,
  };
}

/** The layer of each node: one more than the last of those that it comes after. */
function longestPaths(parents) {
  const children = parents.map(() => []);
  parents.forEach((before, id) => before.forEach((parent) => children[parent].push(id)));
  const waits = parents.map((before) => before.length);
  const layers = parents.map(() => 0);
  const ready = parents.map((_, id) => id).filter((id) => waits[id] === 0);
  for (const id of ready) {
    for (const child of children[id]) {
      layers[child] = Math.max(layers[child], layers[id] + 1);
      waits[child] -= 1;
      if (waits[child] === 0) ready.push(child);
    }
  }
  return layers;
}

function newNode(id, layer, width) {
  return { id, layer, width, before: [], behind: [], at: 0 };
}

/** Join the nodes of an edge, by way of points in the layers between. */
function connect(graph, edge, bends) {
  let previous = graph.nodes[edge.from];
  const last = graph.nodes[edge.to];
  for (let layer = previous.layer + 1; bends && layer < last.layer; layer += 1) {
    const point = newNode(null, layer, SLIM);
    graph.nodes.push(point);
    edge.points.push(point);
    join(previous, point);
    previous = point;
  }
  join(previous, last);
}

function join(one, other) {
  one.behind.push(other);
  other.before.push(one);
}

/** Sort each layer by where its neighbours are, forwards and backwards; the order with the fewest crossings is kept. */
function order(layers) {
  for (const layer of layers) number(layer);
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  let since = 0;
  for (let sweep = 0; sweep < SWEEPS && fewest > 0 && since < PATIENCE; sweep += 1) {
    const side = sweep % 2 ? "behind" : "before";
    for (const layer of sweep % 2 ? layers.toReversed() : layers) {
      const wanted = new Map(layer.map((node) => [node, mean(node[side]) ?? node.at]));
      layer.sort((one, other) => wanted.get(one) - wanted.get(other));
      number(layer);
    }
    const found = crossings(layers);
    since += 1;
    if (found < fewest) {
      since = 0;
      fewest = found;
      best = layers.map((layer) => [...layer]);
    }
  }
  best.forEach((layer, index) => {
    layers[index].splice(0, layer.length, ...layer);
    number(layers[index]);
  });
}

function number(layer) {
  layer.forEach((node, index) => {
    node.at = index;
  });
}

function mean(nodes) {
  return nodes.length ? nodes.reduce((sum, node) => sum + node.at, 0) / nodes.length : null;
}

/** Pairs of edges that cross, counted by inserting the ends of edges in the order of their beginnings. */
function crossings(layers) {
  let sum = 0;
  for (const layer of layers.slice(0, -1)) {
    const ends = layer.flatMap((node) => node.behind.map((other) => other.at).sort((one, other) => one - other));
    const size = ends.reduce((most, end) => Math.max(most, end), 0) + 1;
    const tree = new Array(size + 1).fill(0);
    ends.forEach((end, before) => {
      let upTo = 0;
      for (let index = end + 1; index > 0; index -= index & -index) upTo += tree[index];
      sum += before - upTo;
      for (let index = end + 1; index <= size; index += index & -index) tree[index] += 1;
    });
  }
  return sum;
}

/** Move each node near the middle of its neighbours, as far as the room allows. */
function position(layers) {
  for (const layer of layers) settle(layer, layer.map((_, index) => index - layer.length / 2));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "behind" : "before";
    for (const layer of sweep % 2 ? layers.toReversed() : layers)
      settle(layer, layer.map((node) => mean(node[side]) ?? node.at));
  }
}

/** The positions nearest to the wanted ones (by least squares) that keep the order and the room of each node. */
function settle(layer, wanted) {
  const offsets = [];
  layer.forEach((node, index) => {
    offsets.push(index ? offsets[index - 1] + (layer[index - 1].width + node.width) / 2 : 0);
  });
  const blocks = []; // of nodes that touch each other: their sum and number
  layer.forEach((_, index) => {
    let block = { sum: wanted[index] - offsets[index], size: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).size > block.sum / block.size) {
      const other = blocks.pop();
      block = { sum: block.sum + other.sum, size: block.size + other.size };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const { sum, size } of blocks)
    for (let left = size; left > 0; left -= 1, index += 1) layer[index].at = sum / size + offsets[index];
}
