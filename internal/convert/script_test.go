package convert_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/convert"
)

func TestTheClusterIsKnownByItsNumber(t *testing.T) {
	_, r := lines(t, `executable = p.sh
arguments = "$(Cluster) '$(ClusterId) $(x)'"
environment = "ID=a$(Cluster).$(Process) SAME=1"
output = $(Cluster)/$(x).out
queue x in (a b)
`, convert.Options{Image: "centos"}, nil)
	spec := r.HTCJobs[0].Spec
	require.Equal(t, []string{"{{cluster}}", "{{cluster}}", "{{cluster}} {{item.x}}"}, spec.Script.Args)
	require.Contains(t, spec.Script.Source, "cluster=$1\nshift\nexport ID='a'\"${cluster}\"'.'\"${HTCPROCID}\"\n")
	require.Contains(t, spec.Script.Source, "\nexec ./p.sh \"$@\"\n")
	require.Equal(t, v1alpha1.LandingPlace("{{cluster}}/{{item.x}}.out"), spec.Landing.Stdout)
	require.Equal(t, v1alpha1.Item{"x": "b"}, spec.Items[1])
	accepted(t, r.HTCJobs[0])

	_, r = lines(
		t,
		"executable = p.sh\narguments = {{proc}} {{item.A}}\nqueue\n",
		convert.Options{Image: "centos"},
		nil,
	)
	require.Empty(t, r.HTCJobs[0].Spec.Script.Args)
	require.Contains(t, r.HTCJobs[0].Spec.Script.Source, "exec ./p.sh '{{proc}}' '{{item.A}}'\n")
}

func TestTheClusterIsKnownByItsNumberBesideValuesThatNoMacroGives(t *testing.T) {
	_, r := lines(t, `executable = p.sh
next = $(Process) + 1
n = $INT(next)
arguments = "$(Cluster) $(n)-$(Cluster)-$(n)"
environment = "ID=$(Cluster).$(n)"
output = logs/job_$(Cluster)_$(n).out
queue 2
`, convert.Options{Image: "centos"}, nil)
	spec := r.HTCJobs[0].Spec
	require.Equal(t, v1alpha1.LandingPlace("logs/job_{{cluster}}{{item.STDOUT_2}}"), spec.Landing.Stdout)
	require.Equal(t, []string{"{{cluster}}", "{{cluster}}", "{{item.ARG2_1}}{{cluster}}{{item.ARG2_2}}"}, spec.Script.Args)
	require.Contains(t, spec.Script.Source, `export ID=''"${cluster}"''"${VALUE_ID_2}"`)
	require.Equal(t, "_2.out", string(spec.Items[1]["STDOUT_2"]))
	require.Equal(t, "2-", string(spec.Items[1]["ARG2_1"]))
	require.Equal(t, ".2", string(spec.Items[1]["VALUE_ID_2"]))
	accepted(t, r.HTCJobs[0])
}

func TestInputsWithOtherNamesAreNoOutput(t *testing.T) {
	files := fstest.MapFS{"a/x1": {Data: []byte("1")}, "a/x2": {Data: []byte("2")}}
	text := "executable = p.sh\ntransfer_input_files = a/x$(n)\n%squeue n in (1 2)\n"
	_, r := lines(t, fmt.Sprintf(text, ""), convert.Options{Image: "centos"}, files)
	require.Contains(t, r.HTCJobs[0].Spec.Script.Source, `mv input-1 x"${n}"
: > /tmp/began
./p.sh
code=$?
for file in x"${n}"; do
  [ "$file" -nt /tmp/began ] || rm -f "$file"
done
exit $code
`)
	_, r = lines(t, fmt.Sprintf(text, "transfer_output_files = out\n"), convert.Options{Image: "centos"}, files)
	require.Contains(t, r.HTCJobs[0].Spec.Script.Source, "mv input-1 x\"${n}\"\nexec ./p.sh\n")
}
