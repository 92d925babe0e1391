package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"
)

// name is an attribute's, without its case: names of attributes have none.
type name = unique.Handle[string]

func nameOf(text string) name { return unique.Make(strings.ToLower(text)) }

// attribute is one of an ad, as the log has it.
type attribute struct {
	name  name
	shown unique.Handle[string] // the name as it is spelled
	value string                // in the old syntax of ClassAds
	cut   bool                  // the value is too long to be mirrored
}

// size is about what an attribute takes, in bytes.
func (a attribute) size() int { return 48 + len(a.value) }

// ad is a list of attributes, of which no two have the same name.
type ad []attribute

func (a ad) find(n name) int {
	return slices.IndexFunc(a, func(at attribute) bool { return at.name == n })
}

// private reports whether an attribute is a secret between HTCondor's daemons (compat_classad.cpp), or may be one.
func private(attribute string) bool {
	attribute = strings.ToLower(attribute)
	switch attribute {
	case "claimid", "claimids", "claimidlist", "childclaimids", "pairedclaimid", "capability", "transferkey":
		return true
	}
	return strings.HasPrefix(attribute, "_condor_priv")
}

// The attributes of which one marks a job as htcd's: as one of an HTCJob, or as a node of an HTCWorkflow.
var (
	tags  = []name{nameOf("HTCJobUID"), nameOf("HTCWorkflowUID")}
	owner = nameOf("Owner")
)

// Owners are accounts; nil: all of them.
type Owners map[string]bool

// Has reports whether an account is one of them.
func (o Owners) Has(account string) bool { return o == nil || o[account] }

// jobs are the ads of the clusters that carry a tag of htcd and are of certain owners.
type jobs struct {
	owners Owners
	ours   map[int]bool // clusters
	ads    map[number]ad
	procs  int // ads that are not clusters'
	held   int // bytes of all attributes, about
	most   int // of held; more is an error
}

var errTooMuch = errors.New("the ads of htcd's jobs are larger than htcd feed may hold")

func newJobs(owners Owners, most int) *jobs {
	return &jobs{owners: owners, ours: map[int]bool{}, ads: map[number]ad{}, most: most}
}

// finder finds the clusters that are htcd's among the records of one reading, before any of them is applied: the ad of
// a job may stand before that of its cluster, which has the tag. A tag that comes in a later reading, from
// condor_qedit, makes no job htcd's: how its ad begins is not known any more.
type finder struct {
	owners        Owners
	tagged, owned map[int]bool
}

// see takes note of a line, of which no more than its beginning may be known.
func (f *finder) see(line string) {
	if !strings.HasPrefix(line, "103 ") {
		return
	}
	r, err := parseRecord(line)
	if err != nil || !r.isJobs() {
		return
	}
	switch n := nameOf(r.name); {
	case slices.Contains(tags, n):
		f.tagged[r.key.cluster] = true
	case n == owner && f.owners.Has(strings.Trim(r.value, `"`)):
		f.owned[r.key.cluster] = true
	}
}

// take adds the clusters that were found.
func (j *jobs) take(f *finder) {
	for cluster := range f.tagged {
		if f.owned[cluster] {
			j.ours[cluster] = true
		}
	}
}

func (j *jobs) drop(n number) (held bool) {
	a, held := j.ads[n]
	for _, at := range a {
		j.held -= at.size()
	}
	if held && n.proc != clusterAd {
		j.procs--
	}
	delete(j.ads, n)
	return held
}

// apply changes the ads as one record says, and reports whether it is about an ad that is held.
func (j *jobs) apply(r record, cut bool) (changed bool, err error) {
	if !r.isJobs() || !j.ours[r.key.cluster] {
		return false, nil
	}
	switch r.op {
	case opNew:
		j.drop(r.key)
		if j.ads[r.key] = (ad{}); r.key.proc != clusterAd {
			j.procs++
		}
		return true, nil
	case opDestroy:
		if r.key.proc == clusterAd {
			delete(j.ours, r.key.cluster)
		}
		return j.drop(r.key), nil
	}
	a, held := j.ads[r.key]
	if !held || private(r.name) {
		return false, nil
	}
	n := nameOf(r.name)
	if i := a.find(n); i >= 0 {
		j.held -= a[i].size()
		a = slices.Delete(a, i, i+1)
	}
	if r.op == opDelete && j.ads[number{r.key.cluster, clusterAd}].find(n) >= 0 && r.key.proc != clusterAd {
		r.op, r.value = opSet, "undefined" // so HTCondor hides what the cluster's ad has
	}
	if r.op == opSet {
		at := attribute{name: n, shown: unique.Make(r.name), value: strings.Clone(r.value), cut: cut}
		if cut {
			at.value = ""
		}
		a = append(a, at)
		if j.held += at.size(); j.held > j.most {
			return false, fmt.Errorf("%w: %d MiB", errTooMuch, j.most>>20)
		}
	}
	j.ads[r.key] = a
	return true, nil
}

// number returns an attribute that is one, else -1.
func (a ad) number(attribute string) int {
	if i := a.find(nameOf(attribute)); i >= 0 {
		if n, is := valueOf(a[i], true).Int(); is {
			return int(n)
		}
	}
	return -1
}

// text returns an attribute that is a string, else "".
func (a ad) text(n name) string {
	if i := a.find(n); i >= 0 {
		s, _ := valueOf(a[i], true).Str()
		return s
	}
	return ""
}
