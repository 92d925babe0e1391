package submit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// said is a submit command that corresponds to a spec field.
type said struct {
	field string
	option
}

// said lists the fields that correspond to one submit command each.
func (o JobOptions) said() ([]said, error) {
	var all []said
	add := func(field, key, value string) { all = append(all, said{field, option{key, value}}) }
	for _, r := range []struct {
		field, key string
		asked      int64
	}{
		{"resources.cpus", "request_cpus", o.CPUs}, {"resources.memory", "request_memory", o.Memory},
		{"resources.disk", "request_disk", o.Disk}, {"resources.gpus", "request_gpus", o.GPUs},
	} {
		if r.asked > 0 {
			add(r.field, r.key, strconv.FormatInt(r.asked, 10))
		}
	}
	if o.AccountingGroup != "" {
		add("accountingGroup", "accounting_group", o.AccountingGroup)
	}
	if o.Requirements != "" {
		written, err := requirements(o.Requirements)
		if err != nil {
			return nil, err
		}
		add("requirements", "requirements", written)
	}
	if o.Priority != nil {
		add("priority", "priority", strconv.Itoa(*o.Priority))
	}
	if o.Retries != nil {
		add("retries", "max_retries", strconv.Itoa(*o.Retries))
	}
	if o.RunDeadline > 0 {
		add("runDeadlineSeconds", runLimit, strconv.FormatInt(o.RunDeadline, 10))
	}
	return all, nil
}

// requirements reads the expression in spec.requirements, in which line breaks count as blanks.
func requirements(x string) (string, error) {
	if m := macro.FindString(x); m != "" {
		return "", condor.Refusal(
			"spec.requirements: found the macro %q, expected its value: macros are not replaced here",
			m,
		)
	}
	if err := short("requirements", x); err != nil {
		return "", condor.Refusal("spec.requirements: %w", err)
	}
	written, err := enclosed(x)
	if syntax, ok := errors.AsType[*classad.SyntaxError](err); ok {
		return "", condor.Refusal(
			"spec.requirements, line %d, column %d: found %s, expected %s",
			syntax.Line,
			syntax.Column,
			syntax.Found,
			syntax.Expected,
		)
	}
	if err != nil {
		return "", condor.Refusal("spec.requirements: %w", err)
	}
	return written, oneLine("spec.requirements", written)
}

// agree refuses a line of htcopts that contradicts a spec field.
func (d Description) agree(all []said) error {
	for l, err := range logicalLines(d.Options) {
		if err != nil {
			return err
		}
		o, err := l.parse(d.allowances())
		if err != nil {
			return err
		}
		if field := d.contradicted(o, all); field != "" {
			return l.refuse(
				0,
				"%s in htcopts and spec.%s do not say the same%s: write it once",
				strings.TrimPrefix(o.key, "My."),
				field,
				apart(o, all),
			)
		}
	}
	return nil
}

// apart shows two amounts in one unit: 2G is 2048 MiB to HTCondor, and 1908 MiB to Kubernetes.
func apart(o option, all []said) string {
	for _, s := range all {
		here, isHere := units(o)
		there, isThere := units(s.option)
		if s.key == o.key && isHere && isThere {
			unit := map[string]string{"request_memory": " MiB", "request_disk": " KiB"}[o.key]
			return fmt.Sprintf(
				" (%s = %s is %.0f%s in htcopts, and %.0f%s in the spec)",
				o.key,
				o.value,
				here,
				unit,
				there,
				unit,
			)
		}
	}
	return ""
}

// contradicted names the field that a line of htcopts contradicts, if any.
func (d Description) contradicted(o option, all []said) string {
	for _, s := range all {
		if o.key == s.key && !same(o, s.option) || exclusive[s.key] == o.key {
			return s.field
		}
	}
	codes := d.JobOptions.SuccessCodes
	switch {
	case d.JobOptions.NoGPUs && o.key == "request_gpus" && !same(o, option{o.key, "0"}):
		return "resources.gpus"
	case d.JobOptions.AccountingGroup != "" && strings.EqualFold(o.key, "My.AccountingGroup"):
		return "accountingGroup"
	case o.key == "success_exit_code" && len(codes) > 0 && (len(codes) > 1 || o.value != strconv.Itoa(codes[0])):
		return "successExitCodes"
	case len(d.Outputs) > 0 && (o.key == "transfer_output_files" || o.key == "transfer_output_remaps"):
		return "outputs"
	case len(d.Environment) > 0 && (o.key == "environment" || o.key == "env"):
		return "environment"
	}
	return ""
}

// same reports whether two values of one command mean the same; numbers are compared with their units.
func same(a, b option) bool {
	if a.value == b.value {
		return true
	}
	x, xIs := units(a)
	y, yIs := units(b)
	return xIs && yIs && x == y
}

var unitRE = regexp.MustCompile(`^([0-9.]+) *([KMGTkmgt]?)[Bb]?$`)

// units returns a number as condor_submit reads it: memory in MiB and disk in KiB, rounded up; others unchanged. It
// returns false for an expression.
func units(o option) (float64, bool) {
	m := unitRE.FindStringSubmatch(o.value)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	own := map[string]string{"request_memory": "M", "request_disk": "K"}[o.key]
	if own == "" {
		return n, m[2] == ""
	}
	factor := map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	return math.Ceil(n * factor[cmp.Or(strings.ToUpper(m[2]), own)] / factor[own]), true
}
