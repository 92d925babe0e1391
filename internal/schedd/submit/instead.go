package submit

import (
	"slices"
	"strings"
)

// owned lists the commands htcd sets itself, and what to write instead.
var owned = map[string]string{
	"executable":                "write spec.script.source, which can call any program of the image",
	"arguments":                 toScript,
	"args":                      toScript,
	"universe":                  "htcd runs every script in a container of its own",
	"container_image":           "write spec.script.image",
	"docker_image":              "write spec.script.image",
	"batch_name":                "write spec.name",
	"jobbatchname":              "write spec.name",
	"transfer_input_files":      toInputs,
	"input":                     "name the file in spec.inputs, and let the script read it: command < FILE",
	"environment":               "write spec.environment",
	"env":                       "write spec.environment",
	"getenv":                    "write spec.environment",
	"output":                    "htcd keeps the output of every proc",
	"error":                     "htcd keeps the output of every proc",
	"log":                       "htcd says in the status what becomes of every proc",
	"max_transfer_output_mb":    "how much a job may leave behind is the site's choice (--max-output)",
	"initialdir":                "htcd chooses the directory",
	"leave_in_queue":            "htcd decides when a completed job leaves the queue",
	"hold":                      "write spec.suspend: true, and false when the jobs are to run",
	"max_materialize":           "write spec.parallelism",
	"max_idle":                  "write spec.parallelism",
	"machine_count":             toNodes,
	"node_count":                toNodes,
	"notify_user":               "mail goes to the account's owner",
	"accounting_group_user":     "the account is the one of kinit-secret",
	"checkpoint_exit_code":      toCheckpoint,
	"transfer_checkpoint_files": toCheckpoint,
	"should_transfer_files":     "htcd always transfers files",
	"when_to_transfer_output":   "htcd transfers output on exit; spec.checkpoint.onEviction keeps it when a job is evicted, too",
	"transfer_output_remaps":    toOutputs,
	"output_destination":        toOutputs,
	"transfer_executable":       "htcd sends its own executable",
}

const (
	toScript     = "write spec.script.args; those that differ from job to job are variables, in spec.items or spec.parameters: {{item.NAME}}"
	toInputs     = "write spec.inputs, which names files of ConfigMaps, Secrets and other HTCJobs, URLs and artifacts (docs/data.md)"
	toOutputs    = "write spec.outputs, which says where files go (docs/data.md)"
	toProxy      = "write spec.credentials, with as: X509Proxy (docs/data.md)"
	toToken      = "write spec.credentials, with as: BearerToken (docs/data.md)" // #nosec G101 -- a hint
	toDuration   = "time is no resource: write spec.runDeadlineSeconds, after which the job has failed, or +MaxRuntime where the pool asks for it"
	toCron       = "a CronJob of Kubernetes can create HTCJobs at given times"
	toContainer  = "htcd runs every script in a container of its own"
	toCheckpoint = "write spec.checkpoint: its exitCode, and files, which HTCondor keeps in the schedd's spool"
	toNodes      = "spec.nodes says on how many machines a job runs (docs/multinode.md)"
	toFollow     = "leave it out: htcd logs shows the output of jobs that run"
)

// instead lists further commands, whose place a field or another command takes, with what to write; beginnings end in
// *. Unlike owned ones, a site may allow them. Those of request_ would be taken for resources of the pool's own.
var instead = map[string]string{
	"use_x509userproxy":      toProxy,
	"x509userproxy":          toProxy,
	"use_oauth_services":     toToken,
	"use_scitokens":          toToken,
	"scitokens_file":         toToken,
	"public_input_files":     toInputs,
	"append_files":           toInputs,
	"jar_files":              toInputs,
	"transfer_input":         toInputs,
	"input_files":            toInputs,
	"transfer_output":        "write transfer_output_files, or spec.outputs",
	"output_files":           "write transfer_output_files, or spec.outputs",
	"initial_dir":            "htcd chooses the directory",
	"job_initialdir":         "htcd chooses the directory",
	"get_env":                "write spec.environment",
	"cmd":                    "write spec.script.source, which can call any program of the image",
	"checkpoint_destination": toCheckpoint,
	"retry":                  "write spec.retries",
	"retries":                "write spec.retries",
	"retry_request_memory":   "write spec.memoryRetry, which asks for more memory after a hold for too little",
	"stream_output":          toFollow,
	"stream_error":           toFollow,
	"cron_*":                 toCron,
	"deferral_*":             toCron,
	"grid_*":                 toContainer,
	"vm_*":                   toContainer,
	"docker_*":               toContainer,
	"singularity_*":          toContainer,
	"request_runtime":        toDuration,
	"request_time":           toDuration,
	"request_walltime":       toDuration,
	"request_wall_time":      toDuration,
	"request_duration":       toDuration,
	"request_max_runtime":    toDuration,
	"request_maxruntime":     toDuration,
	"request_ram":            "write request_memory, or spec.resources.memory",
	"request_memory_mb":      "write request_memory, or spec.resources.memory",
	"request_cores":          "write request_cpus, or spec.resources.cpus",
	"request_ncpus":          "write request_cpus, or spec.resources.cpus",
	"request_threads":        "write request_cpus, or spec.resources.cpus",
	"request_storage":        "write request_disk, or spec.resources.disk",
	"request_scratch":        "write request_disk, or spec.resources.disk",
}

// hint returns what to write in place of a command, or "".
func hint(command string) string {
	if words := instead[command]; words != "" {
		return words
	}
	for beginning, words := range instead {
		if family, is := strings.CutSuffix(beginning, "*"); is && strings.HasPrefix(command, family) {
			return words
		}
	}
	return ""
}

// forSites lists the owned commands that a site may allow: they neither read a file nor change a file's place.
// HTCondor's tools run with an environment made by htcd.
var forSites = []string{"environment", "env", "notify_user", "accounting_group_user"}

// heldBack reports whether a command is htcd's own and no site may allow it.
func heldBack(command string) bool {
	return owned[command] != "" && !slices.Contains(forSites, command)
}
