package meter

import (
	"slices"

	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// graph is who may call whom. Its nodes are the functions of the original by their index, imports included, and behind
// them one node for each type, which represents everything that a call_indirect of that type may reach.
type graph struct {
	functions int
	types     []int          // the node of each type
	byType    map[string]int // the same by what the type is: equal types have one node
	edges     [][]int32
	// order has the components of nodes that reach each other, callees first. in is the component of a node.
	order     [][]int32
	component []int32
	// costs are what is known of the functions so far.
	costs []cost
}

// cost is what a call of a function adds to its caller's account.
type cost struct {
	known bool
	// checked: there is a site at its entry, which charges for beforeCall units of its caller too.
	checked bool
	// unchecked: it may be that there is no such site (a call_indirect may have both).
	unchecked bool
	// units are the most that are uncharged when it returns.
	units int
	// imported: it may be foreign code, whose time is unknown. An import that is quick does not count.
	imported bool
}

// node is what a call instruction may enter.
func (g *graph) node(in *wasmbin.Instruction) int {
	if in.Op == wasmbin.OpCallIndirect {
		return g.types[in.Index]
	}
	return int(in.Index)
}

// newGraph has the nodes and what call_indirect may reach; the bodies' calls are added with call.
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

// reach adds what call_indirect may reach.
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

// sort finds the components, callees first (Tarjan 1972, without recursion, since the graph is a stranger's).
func (g *graph) sort() {
	n := len(g.edges)
	index, low := make([]int32, n), make([]int32, n) // 0: not visited
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

// recursive reports whether a function may be active twice.
func (g *graph) recursive(f int) bool {
	return len(g.order[g.component[f]]) > 1 || slices.Contains(g.edges[f], int32(f))
}

// cost gives what a call of a node adds. It is asked by a caller whose callees are known, but for those of its own
// component, which are checked.
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
