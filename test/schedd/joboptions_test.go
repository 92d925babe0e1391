package schedd_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

// jobOptions adds fields to a spec that already has htcopts, and what both mean together.
func (a *author) jobOptions(s *spec) {
	if s.hostile != "" {
		return
	}
	t := &s.JobOptions
	a.number(s, "request_cpus", "RequestCpus", &t.CPUs, 1, 2, 64, 1_000_000)
	a.number(s, "request_memory", "RequestMemory", &t.Memory, 1, 2, 512, 2048, 1<<30)
	a.number(s, "request_disk", "RequestDisk", &t.Disk, 2, 512, 2048, 2097152, 1<<40)
	a.number(s, "request_gpus", "RequestGPUs", &t.GPUs, 1, 2)
	if a.chance(15) {
		if w := s.written["requirements"]; w != nil && a.chance(70) {
			t.Requirements = w[len(w)-1]
		} else {
			t.Requirements = joined(a.condition(a.IntN(4)))
			s.unjoinable("requirements", t.Requirements)
		}
		t.Requirements = strings.ReplaceAll(t.Requirements, "\t", " ")
		s.bounded(t.Requirements, 8192)
		s.requirements = a.meant(t.Requirements)
		for _, w := range s.written["requirements"] {
			s.contradicts(printed(w) != printed(s.requirements), "requirements")
		}
	}
	if a.chance(10) {
		t.AccountingGroup = pick(a, "group_cms.prod", "a-b@c.d", "x")
		s.means["@accounting_group"] = t.AccountingGroup
		s.agree("accounting_group", t.AccountingGroup)
		s.contradicts(s.written["nice_user"] != nil, "nice_user")
	}
	if a.chance(20) {
		t.Retries = new(pick(a, 0, 3, 7))
		s.means["@max_retries"] = strconv.Itoa(*t.Retries)
		s.agree("max_retries", strconv.Itoa(*t.Retries))
	}
	if a.chance(20) {
		a.success(s)
	}
	if a.chance(20) {
		a.moreMemory(s)
	}
	var late []string
	// A limit of htcopts would contradict it, and a condition of theirs for a release would be changed.
	if a.chance(10) && s.means["PeriodicRelease"] == "" && s.written["allowed_execute_duration"] == nil {
		t.RunDeadline = 1 + a.Int64N(315360000)
		s.means["HTCJobRunDeadline"] = fmt.Sprint(t.RunDeadline)
		s.means["AllowedExecuteDuration"] = fmt.Sprint(t.RunDeadline)
		late = append(late, "JobStatus == 5 && HoldReasonCode == 47", fmt.Sprintf("JobStatus == 2 && "+
			"JobCurrentStartExecutingDate >= JobCurrentStartDate && time() - JobCurrentStartExecutingDate > %d", t.RunDeadline))
	}
	if a.chance(20) {
		t.HeldDeadline = 1 + a.Int64N(315360000)
		s.means["HTCJobHeldDeadline"] = fmt.Sprint(t.HeldDeadline)
		late = append(
			late,
			fmt.Sprintf(
				"JobStatus == 5 && HoldReasonCode =!= 16 && (HoldReasonCode =!= 1 || HoldReasonSubCode =!= 7284) && time() - EnteredCurrentStatus > %d",
				t.HeldDeadline,
			),
		)
	}
	if a.chance(20) {
		t.IdleDeadline = 1 + a.Int64N(315360000)
		s.means["HTCJobIdleDeadline"] = fmt.Sprint(t.IdleDeadline)
		late = append(late, fmt.Sprintf("JobStatus == 1 && time() - EnteredCurrentStatus > %d", t.IdleDeadline))
	}
	if len(late) > 0 {
		s.orElse("PeriodicRemove", strings.Join(late, " || "))
	}
	if a.chance(20) {
		a.environment(s)
	}
}

// contradicts marks a spec as one that must be refused.
func (s *spec) contradicts(so bool, what string) {
	if so && s.hostile == "" {
		s.hostile = what + " said in two ways"
	}
}

// agree expects a refusal if htcopts contradict a field.
func (s *spec) agree(command, value string) {
	s.contradicts(slices.ContainsFunc(s.written[command], func(w string) bool { return w != value }), command)
}

// orElse adds an alternative to an expression.
func (s *spec) orElse(attribute, condition string) {
	if before := s.means[attribute]; before != "" {
		condition = printed(condition) + " || " + grouped(before)
	}
	s.means[attribute] = condition
}

// grouped returns an expression as it is written after ||.
func grouped(s string) string {
	x, err := classad.ParseExpr(s)
	if err != nil {
		return s
	}
	switch x := x.(type) {
	case *classad.Cond:
		return "(" + s + ")"
	case *classad.Binary:
		if x.Op == "||" {
			return "(" + s + ")"
		}
	}
	return s
}

// number returns a request, often the one in htcopts.
func (a *author) number(s *spec, command, attribute string, to *int64, amounts ...int64) {
	if !a.chance(20) {
		return
	}
	*to = pick(a, amounts...)
	if w := s.written[command]; w != nil && a.chance(70) {
		if n, err := strconv.ParseInt(w[len(w)-1], 10, 64); err == nil {
			*to = n
		}
	}
	s.means[attribute] = fmt.Sprint(*to)
	s.agree(command, fmt.Sprint(*to))
}

func (a *author) success(s *spec) {
	var codes []string
	for _, code := range a.Perm(4)[:1+a.IntN(4)] {
		code *= 85
		s.JobOptions.SuccessCodes = append(s.JobOptions.SuccessCodes, code)
		codes = append(codes, strconv.Itoa(code))
	}
	s.means["HTCJobSuccessCodes"] = classad.Quote(strings.Join(codes, ","))
	if s.written["success_exit_code"] != nil {
		s.agree("success_exit_code", codes[0])
		s.contradicts(len(codes) > 1, "success_exit_code")
	}
}

func (a *author) moreMemory(s *spec) {
	first, err := strconv.ParseInt(s.means["RequestMemory"], 10, 64)
	most := min(max(1, pick(a, first, first+1, first*3, first*8)), 1<<30)
	s.JobOptions.MemoryRetry = &submit.MemoryRetry{Most: most, Times: 1 + a.IntN(10)}
	if err != nil || most <= first {
		s.hostile = "no more memory than before"
		return
	}
	steps := 0
	for first<<steps < most {
		steps++
	}
	holds := "((NumHoldsByReason.JobOutOfResources ?: 0) + (NumHoldsByReason.StartdHeldJob ?: 0) + (NumHoldsByReason.SystemPolicy ?: 0))"
	s.means["RequestMemory"] = fmt.Sprintf("%s < %d ? %d << %s : %d", holds, steps, first, holds, most)
	s.orElse(
		"PeriodicRelease",
		fmt.Sprintf(
			"JobStatus == 5 && (HoldReasonCode == 34 || (HoldReasonCode == 21 || HoldReasonCode == 26) && HoldReasonSubCode == 102) && %s >= 1 && %s <= %d",
			holds,
			holds,
			min(steps, s.JobOptions.MemoryRetry.Times),
		),
	)
}

// environment adds variables, of which the ad shows only the name of a file.
func (a *author) environment(s *spec) {
	s.Environment = map[string]string{
		pick(a, "A", "PATH", "LD_PRELOAD", "_"): strings.ReplaceAll(a.text(), "\t", " "),
		"B":                                     "$(X)",
	}
	s.means["TransferInput"] = `"script,token,.environment"`
	if a.chance(10) {
		taken := pick(a, "HOME", "HTCPROCID", "APPTAINER_BIND", "SINGULARITYENV_X", "_CONDOR_JOB_AD")
		s.Environment[taken], s.hostile = "x", taken
	}
}
