package submitfile

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Cluster is the queue statements whose jobs HTCondor numbers together.
type Cluster struct{ Queues []*Jobs }

// Jobs are those of one queue statement.
type Jobs struct {
	Position
	Names []string   // of its variables
	Items [][]string // their values, for each item; nil: there are no items

	by          *Statement            // the queue statement
	byItem      map[string]*Statement // commands that variables could be, by their names in lower case
	alone       bool                  // each job is the only one of a file of its own
	each, first int                   // jobs of an item; number of the first one
	cluster     int
	head        *Jobs // of the cluster's first job
	statement   int
	reader      *reader
	indexes     []int // of the items, among all that the list has
}

// named gives the jobs variables of these names.
func (q *Jobs) named(names []string) {
	q.Names, q.byItem = names, map[string]*Statement{}
	for _, name := range names {
		by := &Statement{Position: q.by.Position, Text: q.by.Text, Name: name}
		if attribute, is := attributeName(name); is {
			by.Kind, by.Name = Attribute, attribute
		}
		q.byItem[strings.ToLower(name)] = by
	}
}

// Len is how many there are.
func (q *Jobs) Len() int {
	if q.Items == nil {
		return q.each
	}
	return q.each * len(q.Items)
}

// Job returns one of them, counted from 0.
func (q *Jobs) Job(i int) Job {
	proc := q.first
	if !q.alone {
		proc += i
	}
	return Job{Jobs: q, Proc: proc, Step: i % max(q.each, 1), Item: i / max(q.each, 1)}
}

// Job is one job of a queue statement.
type Job struct {
	*Jobs
	Proc int // its number in its cluster
	Step int // among those of its item
	Item int // the item's number

	replaced map[string]string
}

// With returns the job with other values of $(Process), $(Cluster), or of a variable of its queue statement; the names
// are in lower case.
func (j Job) With(values map[string]string) Job {
	if len(j.replaced) > 0 {
		all := maps.Clone(j.replaced)
		maps.Copy(all, values)
		values = all
	}
	j.replaced = values
	return j
}

// First returns the first job of the cluster; is says whether it is another one.
func (j Job) First() (first Job, is bool) {
	if j.alone || j.Proc == 0 || j.head == nil {
		return Job{}, false
	}
	first = j.head.Job(0)
	if cluster, replaced := j.replaced["cluster"]; replaced {
		first.replaced = map[string]string{"cluster": cluster}
	}
	return first, true
}

// notKept are commands without which a job has not the value of the cluster's first job.
var notKept = []string{"initialdir", "notification", "rank", "requirements", "hold"}

// Value returns the value of the first of these commands that has one, its macros replaced, and the statement that says
// it; nil if there is none. Where a job has none, HTCondor leaves it the value of the cluster's first job.
func (j Job) Value(names ...string) (string, *Statement, error) {
	value, by, _, err := j.ValueOrFirst(names...)
	return value, by, err
}

// ValueOrFirst is Value, and says whether the value is that of the first job.
func (j Job) ValueOrFirst(names ...string) (value string, by *Statement, kept bool, err error) {
	value, by, err = j.value(names)
	first, is := j.First()
	if by != nil || err != nil || !is || slices.Contains(notKept, names[0]) || strings.HasPrefix(names[0], "my.") {
		return value, by, false, err
	}
	value, by, err = first.value(names)
	return value, by, by != nil, err
}

func (j Job) value(names []string) (string, *Statement, error) {
	for _, name := range names {
		text, by := j.defined(name)
		if by == nil {
			continue
		}
		by.Used = true
		value, err := j.Expand(text)
		if err != nil {
			return "", by, err
		}
		if value = trim(value); value != "" {
			return value, by, nil
		}
	}
	return "", nil, nil
}

// defined prefers a variable of the queue statement, which may be a command, to what the file says.
func (j Job) defined(name string) (text string, by *Statement) {
	if by := j.byItem[strings.ToLower(name)]; by != nil && j.Item < len(j.Items) {
		text, _ := j.lookup(name)
		return text, by
	}
	if d, found := j.reader.macros.at(name, j.statement); found {
		return d.value, d.by
	}
	return "", nil
}

// Commands yields the names, in lower case, of all commands and macros that are set for the job, and of its attributes,
// as MY.NAME in lower case.
func (j Job) Commands() func(yield func(name string, by *Statement) bool) {
	return func(yield func(string, *Statement) bool) {
		for name, by := range j.byItem {
			if !yield(name, by) {
				return
			}
		}
		for name := range j.reader.macros {
			d, found := j.reader.macros.at(name, j.statement)
			if found && d.by != nil && j.byItem[name] == nil && !yield(name, d.by) {
				return
			}
		}
	}
}

// Expand replaces the macros of a text.
func (j Job) Expand(text string) (string, error) {
	return newExpander(j.lookup, j.reader.env).expand(text)
}

// lookup prefers the queue statement's variables, and the numbers of cluster and process, to what the file defines, and
// that to what condor_submit defines by itself.
func (j Job) lookup(name string) (string, bool) {
	lower := strings.ToLower(name)
	if value, is := j.replaced[lower]; is {
		return value, true
	}
	for i, variable := range j.Names {
		if strings.EqualFold(variable, name) && j.Item < len(j.Items) {
			return j.Items[j.Item][i], true
		}
	}
	switch lower {
	case "process":
		return strconv.Itoa(j.Proc), true
	case "cluster":
		return strconv.Itoa(j.cluster), true
	}
	if value, found := j.reader.macros.lookup(j.statement)(name); found {
		return value, true
	}
	return j.own(lower)
}

// own are the macros that condor_submit defines.
func (j Job) own(name string) (string, bool) {
	switch name {
	case "procid":
		return j.lookup("Process")
	case "clusterid", "joblistid":
		return j.lookup("Cluster")
	case "jobid":
		return "$(ClusterId).$(ProcId)", true
	case "row", "itemindex":
		if j.Item < len(j.indexes) {
			return strconv.Itoa(j.indexes[j.Item]), true
		}
		return "0", true
	case "step":
		return strconv.Itoa(j.Step), true
	case "node":
		if universe, _ := j.reader.macros.at("universe", j.statement); strings.EqualFold(universe.value, "parallel") {
			return Node, true
		}
		return "", true
	case "submit_file":
		return j.reader.file, true
	case "islinux":
		return "1", true
	case "request_cpus":
		return "$(RequestCPUs)", true
	case "request_memory":
		return "$(RequestMemory)", true
	case "iswindows":
		return "0", true
	case "arch":
		return "X86_64", true
	case "opsys":
		return "LINUX", true
	}
	if layout := timeLayouts[name]; layout != "" && !j.reader.env.Now.IsZero() {
		return j.reader.env.Now.Format(layout), true
	}
	if name == "submit_time" && !j.reader.env.Now.IsZero() {
		return strconv.FormatInt(j.reader.env.Now.Unix(), 10), true
	}
	return "", false
}

// timeLayouts are the macros for the day on which the file is submitted.
var timeLayouts = map[string]string{"year": "2006", "month": "01", "day": "02"}

// Node is what $(Node) becomes in the parallel universe: each node's number replaces it.
const Node = "#pArAlLeLnOdE#"
