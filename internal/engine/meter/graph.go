package meter

import (
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// graph is the call graph. Its nodes are the functions of the original by index, including imports, followed by one
// node for each type, which stands for everything that a call_indirect of that type may reach.
type graph struct {
	functions int
	types     []int          // the node of each type index
	byType    map[string]int // the same by the type's content: equal types share a node
	edges     [][]int32
	// order has the strongly connected components of the graph, callees first; component is a node's component.
	order     [][]int32
	component []int32
	// costs has what is known about the functions so far.
	costs []cost
}

// cost is what a call of a function adds to its caller's uncharged units.
type cost struct {
	known bool
	// checked means that there is a site at its entry, which also charges for beforeCall units of its caller.
	checked bool
	// unchecked means that there may be no such site (a call_indirect may reach both kinds).
	unchecked bool
	// units is the most that is uncharged when it returns.
	units int
	// imported means that it may run foreign code for an unknown time. Quick imports do not count.
	imported bool
}

// node is what a call instruction may enter.
func (g *graph) node(in *wasmbin.Instruction) int {
	if in.Op == wasmbin.OpCallIndirect {
		return g.types[in.Index]
	}
	return int(in.Index)
}

// newGraph creates the nodes, and the edges of call_indirect; calls in bodies are added with call.
func (w *rewriter) newGraph() graph {
	g := graph{functions: int(w.functions), byType: map[string]int{}}
	nodes := g.functions
	for _, t := range w.parsed.Types {
		key := t.String()
		if _, ok := g.byType[key]; !ok {
			g.byType[key] = nodes
			nodes++
		}
		g.types = append(g.types, g.byType[key])
	}
	g.edges, g.component, g.costs = make([][]int32, nodes), make([]int32, nodes), make([]cost, nodes)
	return g
}

// reach adds edges to what call_indirect may reach.
func (w *rewriter) reach() {
	g := &w.graph
	for f := range w.functions {
		if t, ok := w.parsed.FuncType(f); ok && w.referenced[f] {
			from := g.byType[t.String()]
			g.edges[from] = append(g.edges[from], int32(f))
		}
	}
	f := 0
	for _, i := range w.parsed.Imports {
		if i.Kind == wasmbin.KindFunc {
			g.costs[f] = cost{known: true, unchecked: true, units: importUnits, imported: !w.quick(i.Module, i.Name)}
			f++
		}
	}
}

// sort finds the strongly connected components, callees first (Tarjan 1972). It does not recurse, because the graph is
// untrusted.
func (g *graph) sort() {
	n := len(g.edges)
	index, low := make([]int32, n), make([]int32, n) // 0 means not visited
	onStack := make([]bool, n)
	var stack []int32
	type visit struct {
		node int32
		next int
	}
	var visits []visit
	counter := int32(0)
	enter := func(v int32) {
		counter++
		index[v], low[v] = counter, counter
		stack, onStack[v] = append(stack, v), true
		visits = append(visits, visit{node: v})
	}
	for root := range int32(n) {
		if index[root] != 0 {
			continue
		}
		enter(root)
		for len(visits) > 0 {
			at := &visits[len(visits)-1]
			v := at.node
			if at.next < len(g.edges[v]) {
				u := g.edges[v][at.next]
				at.next++
				if index[u] == 0 {
					enter(u)
				} else if onStack[u] {
					low[v] = min(low[v], index[u])
				}
				continue
			}
			visits = visits[:len(visits)-1]
			if len(visits) > 0 {
				caller := visits[len(visits)-1].node
				low[caller] = min(low[caller], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			var members []int32
			for {
				u := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[u], g.component[u] = false, int32(len(g.order))
				if members = append(members, u); u == v {
					break
				}
			}
			g.order = append(g.order, members)
		}
	}
}

// recursive reports whether a function may be active more than once at a time.
func (g *graph) recursive(f int) bool {
	return len(g.order[g.component[f]]) > 1 || slices.Contains(g.edges[f], int32(f))
}

// cost is what a call of a node adds to its caller. The costs of the caller's callees are known, except in its own
// component, whose functions are all checked.
func (g *graph) cost(node int, openTables bool) cost {
	c := &g.costs[node]
	if c.known {
		return *c
	}
	if node < g.functions {
		return cost{known: true, checked: true, units: atExit}
	}
	*c = cost{known: true}
	if openTables {
		*c = cost{known: true, unchecked: true, units: importUnits, imported: true}
	}
	for _, f := range g.edges[node] {
		one := g.cost(int(f), openTables)
		c.checked, c.unchecked, c.imported = c.checked || one.checked, c.unchecked || one.unchecked, c.imported ||
			one.imported
		c.units = max(c.units, one.units)
	}
	return *c
}
