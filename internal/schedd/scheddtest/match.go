package scheddtest

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// match evaluates the constraints that internal/schedd writes: comparisons of attributes with literals, member(), &&
// and ||. Anything else is an error, so that no test passes because its schedd understood less than HTCondor's.
func match(j condor.Job, constraint condor.Constraint) (bool, error) {
	return matchAt(j, constraint, 0)
}

// matchAt is match for constraints that also compare with the schedd's time().
func matchAt(j condor.Job, constraint condor.Constraint, now int64) (bool, error) {
	if constraint == "" {
		return true, nil
	}
	x, err := classad.ParseExpr(string(constraint))
	if err != nil {
		return false, fmt.Errorf("constraint %q: %w", constraint, err)
	}
	v, err := eval(append(ad(j), classad.Attr{Name: "time()", Value: classad.IntValue(now)}), x)
	if err != nil {
		return false, fmt.Errorf("constraint %q: %w", constraint, err)
	}
	b, _ := v.Bool()
	return b, nil
}

func ad(j condor.Job) classad.Ad {
	n := func(name string, i int) classad.Attr {
		return classad.Attr{Name: name, Value: classad.IntValue(int64(i))}
	}
	s := func(name, s string) classad.Attr { return classad.Attr{Name: name, Value: classad.StringValue(s)} }
	a := classad.Ad{
		n("ClusterId", j.Cluster),
		n("ProcId", j.Proc),
		n("JobStatus", int(j.Status)),
		n("LastJobStatus", int(j.LastStatus)),
		n(
			"HoldReasonCode",
			j.HoldReasonCode,
		),
		n("HoldReasonSubCode", j.HoldReasonSubCode),
		n("QDate", int(j.QDate)),
		n("EnteredCurrentStatus", int(j.EnteredCurrentStatus)),
		s("Owner", j.Owner),
	}
	if j.StageInFinish != 0 {
		a = append(a, n("StageInFinish", int(j.StageInFinish)))
	}
	if j.Own != nil {
		a = append(a, n("HTCJobProc", *j.Own))
	}
	if t := j.Tag; t.UID != "" {
		a = append(
			a,
			s("HTCJobUID", t.UID),
			n("HTCJobAttempt", t.Attempt),
			s("HTCJobNamespace", t.Namespace),
			s("HTCJobName", t.Name),
		)
	}
	if t := j.Node; t.UID != "" {
		a = append(a, s("HTCWorkflowUID", t.UID), n("HTCWorkflowDAG", t.DAG), n("HTCNode", t.Number))
	}
	return a
}

func eval(a classad.Ad, x classad.Expr) (classad.Value, error) {
	switch x := x.(type) {
	case *classad.Literal:
		return x.Value, nil
	case *classad.Paren:
		return eval(a, x.X)
	case *classad.Ref:
		return a.Get(x.Name), nil
	case *classad.Unary:
		v, err := eval(a, x.X)
		if b, ok := v.Bool(); ok && x.Op == "!" {
			return classad.BoolValue(!b), err
		}
		if i, ok := v.Int(); ok && x.Op == "-" {
			return classad.IntValue(-i), err
		}
	case *classad.Call:
		if strings.EqualFold(x.Name, "time") && len(x.Args) == 0 {
			return a.Get("time()"), nil
		}
		if !strings.EqualFold(x.Name, "member") || len(x.Args) != 2 {
			break
		}
		list, ok := x.Args[1].(*classad.List)
		if !ok {
			break
		}
		want, err := eval(a, x.Args[0])
		if err != nil {
			return want, err
		}
		for _, e := range list.Elems {
			v, err := eval(a, e)
			if err != nil || v == want {
				return classad.BoolValue(err == nil), err
			}
		}
		return classad.BoolValue(false), nil
	case *classad.Binary:
		return binary(a, x)
	}
	return classad.Value{}, fmt.Errorf("%s is beyond this schedd", x)
}

func binary(a classad.Ad, x *classad.Binary) (classad.Value, error) {
	l, err := eval(a, x.L)
	if err != nil {
		return l, err
	}
	r, err := eval(a, x.R)
	if err != nil {
		return r, err
	}
	lb, _ := l.Bool()
	rb, _ := r.Bool()
	li, lok := l.Int()
	ri, rok := r.Int()
	ls, lstr := l.Str()
	rs, rstr := r.Str()
	same := l == r
	switch x.Op {
	case "=?=":
		return classad.BoolValue(same), nil
	case "=!=":
		return classad.BoolValue(!same), nil
	case "-":
		return classad.IntValue(li - ri), nil
	case "&&":
		return classad.BoolValue(lb && rb), nil
	case "||":
		return classad.BoolValue(lb || rb), nil
	case "==", "!=":
		if l.Kind() == classad.Undefined || r.Kind() == classad.Undefined {
			return classad.Value{}, nil
		}
		if lstr && rstr {
			same = strings.EqualFold(ls, rs)
		}
		return classad.BoolValue(same == (x.Op == "==")), nil
	case "<", "<=", ">", ">=":
		if !lok || !rok {
			return classad.Value{}, nil
		}
		return classad.BoolValue(map[string]bool{"<": li < ri, "<=": li <= ri, ">": li > ri, ">=": li >= ri}[x.Op]), nil
	}
	return classad.Value{}, fmt.Errorf("the operator %s is beyond this schedd", x.Op)
}
