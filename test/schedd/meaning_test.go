package schedd_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

var (
	specs = flag.Int("specs", 300, "how many specs are given to condor_submit")
	seed  = flag.Uint64("seed", 1, "where the specs begin")
)

// For any spec the real condor_submit produces exactly the intended attributes, in addition to those of an empty spec,
// and nothing else.
func TestTheAdIsWhatTheSpecMeans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newBench(t).d
	require.NoError(t, stage(dir, d))
	usual, err := dryRun(t.Context(), dir)
	require.NoError(t, err)
	a := &author{}
	for i, files := 0, goldens(t, "schedd/submit/testdata/refused.txtar"); i < len(files); i += 2 {
		a.hostile = append(a.hostile, string(files[i].Data))
	}
	accepted, differ := 0, 0
	for i := range uint64(*specs) {
		a.Rand = rand.New(rand.NewPCG(*seed, i))
		s := a.spec(d)
		sandbox, err := s.Render()
		if s.hostile != "" {
			require.Equal(
				t,
				condor.Refused,
				condor.KindOf(err),
				"seed %d, spec %d: %q\n%s",
				*seed,
				i,
				s.hostile,
				s.Options,
			)
			continue
		}
		if err == nil {
			accepted++
			require.NoError(t, submit.Stage(dir, sandbox, token))
			var ads []classad.Ad
			if ads, err = dryRun(t.Context(), dir); err == nil {
				err = s.compare(usual[0], ads)
			}
		}
		if err != nil {
			differ++
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				err = fmt.Errorf("%w: %s", err, exit.Stderr)
			}
			t.Errorf("seed %d, spec %d: %v\n%s", *seed, i, err, s.Options)
		}
	}
	t.Logf(
		"%d specs: %d described and given to condor_submit, %d refused as they should be, %d differ",
		*specs,
		accepted,
		*specs-accepted,
		differ,
	)
	require.Greater(t, accepted, *specs/3)
}

// measured lists attributes whose value is a time or a size.
var measured = []string{
	"QDate",
	"EnteredCurrentStatus",
	"DiskUsage",
	"ImageSize",
	"ExecutableSize",
	"TransferInputSizeMB",
}

// compare describes the differences between the ads and what s means.
func (s spec) compare(usual classad.Ad, ads []classad.Ad) error {
	if len(ads) != s.Queue {
		return fmt.Errorf("%d procs instead of %d", len(ads), s.Queue)
	}
	want := map[string]string{}
	for _, at := range usual {
		want[at.Name] = at.Value.String()
	}
	maps.Copy(want, s.means)
	want["HTCJobUID"] = classad.Quote(s.Tag.UID)
	want["HTCJobAttempt"] = fmt.Sprint(s.Tag.Attempt)
	want["HTCJobNamespace"] = classad.Quote(s.Tag.Namespace)
	want["HTCJobName"] = classad.Quote(s.Tag.Name)
	s.consequences(want)
	var wrong []error
	differ := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	left := map[string]string{} // by lower-case name, because names are case-insensitive
	for name, w := range want {
		left[strings.ToLower(name)] = w
	}
	for _, at := range ads[0] {
		w, meant := left[strings.ToLower(at.Name)]
		delete(left, strings.ToLower(at.Name))
		text, isText := at.Value.Str()
		switch {
		case !meant:
			differ("%s = %s was not meant, or comes twice", at.Name, at.Value)
		case slices.Contains(measured, at.Name), isText && text == content(w):
		case at.Name == "Requirements":
			if err := s.checkRequirements(usual.Get("Requirements"), at.Value); err != nil {
				wrong = append(wrong, err)
			}
		case printed(at.Value.String()) != printed(w):
			differ("%s = %s instead of %s", at.Name, at.Value, printed(w))
		}
	}
	for name, w := range left {
		differ("%s = %s is missing", name, w)
	}
	for i, ad := range ads[1:] {
		for _, at := range ad {
			if !slices.Contains([]string{"ProcId", "JobStatus", "Err", "Out", "Args", "UserLog"}, at.Name) {
				wrong = append(wrong, fmt.Errorf("proc %d: %s = %s was not meant", i+1, at.Name, at.Value))
			}
		}
		if args, _ := ad.Get("Args").Str(); args != fmt.Sprint(i+1) {
			wrong = append(wrong, fmt.Errorf("proc %d: Args = %q", i+1, args))
		}
	}
	return errors.Join(wrong...)
}

// consequences computes the attributes that several commands determine together.
func (s spec) consequences(want map[string]string) {
	command := func(name string) string {
		v := want["@"+name]
		delete(want, "@"+name)
		return v
	}
	put := func(name, value string) {
		if value != "" {
			want[name] = value
		}
	}
	if p := command("preferences"); p != "" && s.means["Rank"] == "" {
		put("Rank", p)
	}
	for name, value := range want {
		if value == "" || strings.HasPrefix(name, "Request") && strings.EqualFold(value, "undefined") {
			delete(want, name) // HTCondor writes no such attribute
		}
	}

	retries, success, until := command("max_retries"), command("success_exit_code"), command("retry_until")
	hold, remove := command("on_exit_hold"), command("on_exit_remove")
	if success != "" {
		put("HTCJobSuccessCodes", cmp.Or(want["HTCJobSuccessCodes"], classad.Quote(success)))
	}
	if retries+success+until != "" {
		put("JobMaxRetries", cmp.Or(retries, "2"))
		end, last := "NumJobCompletions > JobMaxRetries || ExitCode =?= 0", func(x string) string { return bound(x, "||") }
		if all := content(want["HTCJobSuccessCodes"]); all != "" {
			codes := strings.Split(all, ",")
			ends := "ExitCode =?= " + strings.Join(codes, " || ExitCode =?= ")
			if until != "" {
				ends += " || " + grouped(strings.TrimSuffix(strings.TrimPrefix(until, "("), ")"))
			}
			until = ends
			if !slices.Contains(codes, "0") { // then the whole is ours
				end, last = "NumJobCompletions > JobMaxRetries", grouped
			}
		}
		for _, x := range []string{until, remove} {
			if x != "" {
				end += " || " + last(x)
			}
		}
		put("OnExitRemove", end)
		put("OnExitHold", cmp.Or(hold, "false"))
	} else {
		put("OnExitHold", hold)
		put("OnExitRemove", remove)
	}

	group, nice := command("accounting_group"), command("nice_user") == "true"
	if nice {
		group = "nice-user" // HTCondor uses this group regardless of anything else
		put("MaxJobRetirementTime", "0")
	}
	if group != "" {
		put("AcctGroup", classad.Quote(group))
		put("AcctGroupUser", "Owner") // condor_submit would write its own account's name
		put("AccountingGroup", `strcat(AcctGroup,".",Owner)`)
	}

	require := command("require_gpus")
	memory, runtime := command("gpus_minimum_memory"), command("gpus_minimum_runtime")
	least, most := command("gpus_minimum_capability"), command("gpus_maximum_capability")
	if want["RequestGPUs"] == "" {
		return
	}
	var clauses []string
	if require != "" {
		clauses = append(clauses, bound(require, "&&"))
	}
	for _, m := range []struct{ value, attribute, of string }{
		{least, "GPUsMinCapability", "Capability >="}, {most, "GPUsMaxCapability", "Capability <="},
		{memory, "GPUsMinMemory", "GlobalMemoryMb >="}, {runtime, "GPUsMinRuntime", "MaxSupportedVersion >="},
	} {
		if put(m.attribute, m.value); m.value != "" {
			clauses = append(clauses, m.of+" "+m.attribute)
		}
	}
	if len(clauses) == 1 && require != "" {
		clauses[0] = require
	}
	put("RequireGPUs", strings.Join(clauses, " && "))
}

// bound puts an expression in parentheses if the operator op would bind to a part of it.
func bound(s, op string) string {
	x, err := classad.ParseExpr(s)
	if err != nil {
		return s
	}
	switch x := x.(type) {
	case *classad.Cond:
		return "(" + s + ")"
	case *classad.Binary:
		if op == "&&" && x.Op == "||" {
			return "(" + s + ")"
		}
	}
	return s
}

// measures lists the job's attributes in the clauses that HTCondor adds for requests.
var measures = regexp.MustCompile(`\b(Request[A-Za-z]+|DiskUsage)\b`)

// checkRequirements expects ours as the leftmost conjuncts. What HTCondor adds depends on its release and on the
// requests: each added conjunct is in the ad of an empty spec, too, or compares what a machine has.
func (s spec) checkRequirements(usual, got classad.Value) error {
	had, err := usual.Expr()
	if err != nil {
		return err
	}
	x, err := got.Expr()
	if err != nil {
		return err
	}
	common, all := conjuncts(had), conjuncts(x)
	if s.requirements != "" {
		if all[0] != "("+printed(s.requirements)+")" {
			return fmt.Errorf("Requirements = %s do not begin with (%s)", x, printed(s.requirements))
		}
		all = all[1:]
	}
	for _, clause := range all {
		if !slices.Contains(common, clause) && !measures.MatchString(clause) {
			return fmt.Errorf("Requirements = %s: %s was not meant", x, clause)
		}
	}
	return nil
}

// conjuncts returns the parts of a && b && c.
func conjuncts(x classad.Expr) []string {
	if b, ok := x.(*classad.Binary); ok && b.Op == "&&" {
		return append(conjuncts(b.L), b.R.String())
	}
	return []string{x.String()}
}

func printed(s string) string {
	x, err := classad.ParseExpr(s)
	if err != nil {
		return "! " + err.Error() + ": " + s
	}
	return x.String()
}

// content returns the text of a string literal.
func content(s string) string {
	x, err := classad.ParseExpr(s)
	if l, ok := x.(*classad.Literal); ok && err == nil {
		text, _ := l.Value.Str()
		return text
	}
	return ""
}
