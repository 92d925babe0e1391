package submitfile

import (
	"sort"
	"strings"
)

// definition is one of a macro's values, which holds until the next one.
type definition struct {
	from  int // the number of the statement
	value string
	by    *Statement // nil: after a queue statement
}

// macros holds every definition of every macro, by its name in lower case: each queue statement sees those before it.
type macros map[string][]definition

func (m macros) define(name string, d definition) {
	name = strings.ToLower(name)
	m[name] = append(m[name], d)
}

// at returns what a macro is at a statement.
func (m macros) at(name string, statement int) (definition, bool) {
	all := m[strings.ToLower(name)]
	i := sort.Search(len(all), func(i int) bool { return all[i].from > statement })
	if i == 0 {
		return definition{}, false
	}
	return all[i-1], true
}

// lookup finds the macros of a statement, and marks them as used.
func (m macros) lookup(statement int) lookup {
	return func(name string) (string, bool) {
		d, found := m.at(name, statement)
		if found && d.by != nil {
			d.by.Used = true
		}
		return d.value, found
	}
}
