package dagfile

import (
	"math"
	"slices"
	"strings"
)

// statement does what a statement says.
func (r *reader) statement(s *scope, l *line) error {
	w := &words{l.Place, l.Rest}
	switch l.Command {
	case "JOB", "SUBDAG", "FINAL", "SERVICE", "PROVISIONER":
		return r.node(s, l, w)
	case "SUBMIT-DESCRIPTION":
		return describe(s, l, w)
	case "SPLICE":
		return r.splice(s, w)
	case "INCLUDE":
		name, err := w.path("the file")
		if err == nil {
			err = w.end()
		}
		if err != nil {
			return err
		}
		return r.file(s, name, l.Place)
	case "PARENT":
		return r.parent(s, w, false)
	case "WEAK":
		if !w.option("PARENT") {
			return w.errorf("WEAK is followed by PARENT")
		}
		return r.parent(s, w, true)
	case "CONNECT":
		return r.connect(s, w)
	case "PIN_IN":
		return pin(s, w, 0)
	case "PIN_OUT":
		return pin(s, w, 1)
	case "MAXJOBS":
		return limit(s, w)
	case "REJECT":
		return w.errorf("REJECT stands in files that are not to be run, such as rescue DAGs of files that could not " +
			"be read: mend the DAG that it comes from")
	case "VARS", "RETRY", "PRIORITY", "CATEGORY", "SCRIPT", "ABORT-DAG-ON", "PRE_SKIP", "TOLERANCE", "DONE",
		"SAVE_POINT_FILE":
		return r.about(s, l, w)
	}
	return file(l, w)
}

// file checks commands that concern no node.
func file(l *line, w *words) error {
	switch l.Command {
	case "SET_JOB_ATTR", "ENV": // only condor_submit_dag looks at them
		_, err := w.next("what follows " + l.Command)
		return err
	}
	if _, err := w.path("the file"); err != nil {
		return err
	}
	switch l.Command {
	case "DOT":
		for w.rest != "" {
			if w.option("INCLUDE") {
				if _, err := w.path("the file"); err != nil {
					return err
				}
			} else if !w.option("UPDATE") && !w.option("DONT-UPDATE") && !w.option("OVERWRITE") &&
				!w.option("DONT-OVERWRITE") {
				break
			}
		}
	case "NODE_STATUS_FILE":
		for w.rest != "" && !w.option("ALWAYS-UPDATE") {
			if _, err := w.number("the shortest time between updates", math.MinInt32, math.MaxInt32); err != nil {
				return err
			}
		}
	}
	return w.end()
}

// about does what a statement says of nodes that are there.
func (r *reader) about(s *scope, l *line, w *words) error {
	var kind string
	run := Script{Place: l.Place}
	if l.Command == "SCRIPT" {
		var err error
		if kind, run.Deferred, err = script(w); err != nil {
			return err
		}
	}
	name, err := w.next("the node")
	if err != nil {
		return err
	}
	nodes, err := s.named(w, name)
	if err != nil {
		return err
	}
	var set func(*Node)
	allowed := "JOB SUBDAG" // kinds
	switch l.Command {
	case "VARS":
		return r.vars(nodes, w)
	case "SCRIPT":
		if run.Words = strings.FieldsFunc(
			w.rest,
			func(r rune) bool { return strings.ContainsRune(blanks, r) },
		); len(run.Words) == 0 {
			return w.errorf("the script is missing")
		}
		allowed, w.rest = "", ""
		set = func(node *Node) {
			switch kind {
			case "PRE":
				node.Pre = &run
			case "POST":
				node.Post = &run
			}
		}
	case "RETRY":
		set, err = retry(w)
	case "PRIORITY":
		var n int
		n, err = w.number("the priority", math.MinInt32, math.MaxInt32)
		set = func(node *Node) { node.Priority = n }
	case "CATEGORY":
		var category string
		category, err = w.next("the category")
		set = func(node *Node) { node.Category = category }
	case "ABORT-DAG-ON":
		var a Abort
		if a, err = abort(w); err == nil {
			set = func(node *Node) { node.Abort = &a }
		}
		allowed += " SERVICE PROVISIONER"
	case "DONE":
		// DAGMan only warns that others cannot be done.
		allowed = ""
		set = func(node *Node) { node.Done = node.Kind == Job || node.Kind == Subdag }
	default:
		allowed, set = "", func(*Node) {}
		err = checked(l.Command, name, w)
	}
	if err == nil {
		err = w.end()
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if allowed != "" && !strings.Contains(allowed, string(n.Kind)) {
			return w.errorf("%s is not for %s nodes such as %s", l.Command, n.Kind, n.Name)
		}
		set(n)
	}
	return r.spend(l.Place, 8*len(nodes))
}

// checked reads the rest of a statement that has no place in the graph.
func checked(command, name string, w *words) error {
	var err error
	switch command {
	case "PRE_SKIP":
		_, err = w.number("the exit code", math.MinInt32, math.MaxInt32)
	case "TOLERANCE":
		_, err = w.number("the tolerance", 0, math.MaxInt32)
		w.rest = ""
	case "SAVE_POINT_FILE":
		if strings.EqualFold(name, allNodes) {
			return w.errorf("SAVE_POINT_FILE names one node, not ALL_NODES")
		}
		if w.rest != "" {
			_, err = w.path("the file")
		}
	}
	return err
}

func abort(w *words) (a Abort, err error) {
	a.Place = w.at
	if a.Code, err = w.number("the exit code", math.MinInt32, math.MaxInt32); err != nil {
		return a, err
	}
	if a.Return = a.Code; w.option("RETURN") {
		a.Return, err = w.number("the value after RETURN", 0, 255)
	}
	return a, err
}

func retry(w *words) (func(*Node), error) {
	times, err := w.number("the number of retries", 0, math.MaxInt32)
	unless := 0
	if err == nil && w.option("UNLESS-EXIT") {
		unless, err = w.number("the exit code", math.MinInt32, math.MaxInt32)
	}
	return func(n *Node) {
		n.Retries = times
		if unless != 0 {
			n.UnlessExit = unless
		}
	}, err
}

// script reads what stands before the node's name, and says whether it is PRE, POST or HOLD.
func script(w *words) (kind string, deferred bool, err error) {
	for {
		switch {
		case w.option("DEFER"):
			deferred = true
			for _, what := range []string{"the status after DEFER", "the time after DEFER"} {
				if _, err := w.number(what, math.MinInt32, math.MaxInt32); err != nil {
					return "", false, err
				}
			}
		case w.option("DEBUG"):
			if _, err := w.path("the file after DEBUG"); err != nil {
				return "", false, err
			}
			if !w.option("STDOUT") && !w.option("STDERR") && !w.option("ALL") {
				return "", false, w.errorf("after DEBUG FILE stands STDOUT, STDERR or ALL")
			}
		default:
			for _, kind := range []string{"PRE", "POST", "HOLD"} {
				if w.option(kind) {
					return kind, deferred, nil
				}
			}
			return "", false, w.errorf("after SCRIPT, and perhaps DEFER and DEBUG, stands PRE, POST or HOLD")
		}
	}
}

// maxVars bounds the variables of one node, among which each new one is looked for.
const maxVars = 1000

func (r *reader) vars(nodes []*Node, w *words) error {
	all, err := w.vars()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		for _, v := range all {
			if err := r.spend(w.at, 64+4*len(n.Vars)); err != nil {
				return err
			}
			i := slices.IndexFunc(n.Vars, func(o Var) bool { return strings.EqualFold(o.Name, v.Name) })
			if i >= 0 {
				n.Vars = slices.Delete(n.Vars, i, i+1)
			} else if len(n.Vars) == maxVars {
				return w.errorf("%s has more than %d variables: that is too many to convert", n.Name, maxVars)
			}
			n.Vars = append(n.Vars, v)
		}
	}
	return nil
}

func limit(s *scope, w *words) error {
	category, err := w.next("the category")
	if err != nil {
		return err
	}
	n, err := w.number("the number of jobs", 0, math.MaxInt32)
	if err == nil {
		err = w.end()
	}
	s.limits[category] = n
	return err
}
