//go:build !releases

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// variables returns n of them.
func variables(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("V%d", i)] = "x"
	}
	return m
}

func variable(name, value string) change { return set("environment", map[string]any{name: value}) }

// The apiserver's answers about the fields that stand for submit commands.
var appliedFields = map[string]answer{
	"resources in Kubernetes' words": {
		set("resources", map[string]any{"cpus": "500m", "memory": "1.5Gi", "disk": "10G", "gpus": int64(1)}),
		"",
	},
	"resources as plain numbers": {
		set("resources", map[string]any{"cpus": int64(4), "memory": int64(1 << 30)}),
		"",
	},
	"no resources": {set("resources", map[string]any{}), ""},
	"two nodes":    {both(set("nodes", int64(2)), set("script.queue", int64(1))), ""},
	"one node":     {set("nodes", int64(1)), "should be greater than or equal to 2"},
	"jobs of several nodes": {
		both(set("nodes", int64(2)), set("script.queue", int64(2))),
		"HTCondor would make a single job of them all; make several HTCJobs",
	},
	"nodes of a factory": {
		both(set("nodes", int64(2)), set("parallelism", int64(2))),
		"parallelism, checkpoint, itemsFrom, parameters, keepOnFailure and interactive do not go with",
	},
	"no cpus": {
		set("resources.cpus", "0"),
		"the cpus must be more than 0 and at most 1M",
	},
	"fewer cpus than none":      {set("resources.cpus", int64(-1)), "the cpus must be more than 0"},
	"less memory than none":     {set("resources.memory", "-1Gi"), "the memory must be 1Mi to 1Pi"},
	"more memory than there is": {set("resources.memory", "2Pi"), "the memory must be 1Mi to 1Pi"},
	"memory in nobody's unit": {
		set("resources.memory", "2GB"),
		"written as 500Mi, 4G or 4Gi, and not as 4GB",
	},
	"memory that takes minutes to compare": {set("resources.memory", "1e50000000"), "the memory must be 1Mi to 1Pi"},
	"memory that takes minutes to read":    {set("resources.memory", "1e-50000000"), "the memory must be 1Mi to 1Pi"},
	"the most of it, too": {
		both(set("resources.memory", "1Gi"), set("memoryRetry.maxMemory", "1e50000000")),
		"maxMemory must be 1Mi to 1Pi",
	},
	"memory of 3000 bytes": {set("resources.memory", int64(3000)), "for 3000 MiB write 3000Mi"},
	"no disk":              {set("resources.disk", int64(0)), "the disk must be 1Mi to 1Pi"},
	"no gpus":              {set("resources.gpus", int64(0)), ""},
	"half a gpu":           {set("resources.gpus", "500m"), "the gpus must be a whole number"},
	"fewer gpus than none": {set("resources.gpus", int64(-1)), "the gpus must be a whole number"},
	"a resource that does not exist": {
		set("resources.tapes", int64(1)),
		`unknown field "spec.resources.tapes"`,
	},
	"128 variables":                          {set("environment", variables(128)), ""},
	"129 variables":                          {set("environment", variables(129)), "spec.environment: Too many"},
	"a variable with odd text":               {variable("A_1", `$HOME "x" 'y' \ ä😀 =`), ""},
	"a variable with an odd name":            {variable("A-1", ""), "a variable's name must be letters, digits and _"},
	"a variable of two lines":                {variable("A", "x\ny"), "a variable's value must be one line"},
	"a variable with a tab":                  {variable("A", "x\ty"), "a variable's value must be one line"},
	"a variable that is too long":            {variable("A", strings.Repeat("x", 4097)), "Too long"},
	"a variable that htcd sets":              {variable("HTCPROCID", "7"), "choose another name"},
	"a variable that HTCondor sets":          {variable("_CONDOR_SCRATCH_DIR", "/"), "choose another name"},
	"a variable that opens containers":       {variable("APPTAINER_BIND", "/etc"), "choose another name"},
	"a variable that opens older containers": {variable("SINGULARITYENV_X", "/etc"), "choose another name"},
	"the path":                               {variable("PATH", "/opt/bin:/bin"), ""},
	"an accounting group":                    {set("accountingGroup", "group_u_CMS.u_zh"), ""},
	"an accounting group with a blank":       {set("accountingGroup", "a b"), "the accounting group must be"},
	"an accounting group that ends in a dot": {set("accountingGroup", "a."), "the accounting group must be"},
	"requirements":                           {set("requirements", "OpSysMajorVer == 9 && HasSingularity"), ""},
	"empty requirements":                     {set("requirements", ""), "spec.requirements"},
	"retries":                                {set("retries", int64(3)), ""},
	"fewer retries than none":                {set("retries", int64(-1)), "should be greater than or equal to 0"},
	"success codes":                          {set("successExitCodes", []any{int64(0), int64(3)}), ""},
	"no success codes":                       {set("successExitCodes", []any{}), "spec.successExitCodes"},
	"the same success code twice":            {set("successExitCodes", []any{int64(3), int64(3)}), "Duplicate value"},
	"a success code that no process ends with": {
		set("successExitCodes", []any{int64(256)}),
		"should be less than or equal to 255",
	},
	"more memory": {
		both(set("resources.memory", "1Gi"), set("memoryRetry.maxMemory", "4Gi")),
		"",
	},
	"more memory than htcopts ask for": {
		both(set("htcopts", "Request_Memory = 2GB\n"), set("memoryRetry.maxMemory", "4Gi")),
		"",
	},
	"no more memory than before": {
		both(set("resources.memory", "4Gi"), set("memoryRetry.maxMemory", "4Gi")),
		"memoryRetry.maxMemory must be more than resources.memory",
	},
	"more memory than there is, at last": {
		both(set("resources.memory", "4Gi"), set("memoryRetry.maxMemory", "2Pi")),
		"maxMemory must be 1Mi to 1Pi",
	},
	"more memory too often": {
		both(
			set("resources.memory", "1Gi"),
			set("memoryRetry", map[string]any{"maxMemory": "4Gi", "maxRetries": int64(11)}),
		),
		"should be less than or equal to 10",
	},
	"deadlines": {
		both(set("heldDeadlineSeconds", int64(600)), set("idleDeadlineSeconds", int64(86400))),
		"",
	},
	"a deadline of each execution": {set("runDeadlineSeconds", int64(3600)), ""},
	"a deadline of an execution at once": {
		set("runDeadlineSeconds", int64(0)),
		"should be greater than or equal to 1",
	},
	"a deadline at once": {
		set("heldDeadlineSeconds", int64(0)),
		"should be greater than or equal to 1",
	},
	"a deadline nobody lives to see": {
		set("idleDeadlineSeconds", int64(315360001)),
		"should be less than or equal to",
	},
}

func TestApplyAnswersAboutFields(t *testing.T) {
	t.Parallel()
	requireAnswers(t, v1alpha1.Resource, v1alpha1.Kind, appliedFields, func() map[string]any {
		return map[string]any{"script": map[string]any{"image": "centos", "command": "bash", "source": "exit 0\n"}}
	})
}
