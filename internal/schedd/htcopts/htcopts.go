// Package htcopts lists what htcopts takes everywhere.
package htcopts

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Attributes may be set with +Name or MY.Name: those that sites document for their users, and none that HTCondor
// itself acts upon.
var Attributes = []string{
	"JobFlavour", "MaxRuntime", "AccountingGroup", "SendCredential", "WantOS", "BigMemJob",
	"ProjectName", "DESIRED_Sites", "DESIRED_CMS_Sites", "UNDESIRED_Sites",
	"REQUIRED_OS", "WantScienceGatewayJob", "Experiment", "JobDescription",
	"WantGPULab", "GPUJobLength", "is_resumable", "JobDurationCategory", "RequestRuntime", "MaxRuntimeHours",
	"ContainerOS", "CephFS_IO", "WantFlocking", "WantGlidein", "RequestWalltime", "RemoteJob", "MyProject",
	"ProjectDescription", "GPUJob", "DESIRED_usage_model",
}

// condorAttributes are the names in HTCondor's condor_attributes.h and in its manual's list of job attributes, one on
// each line, of version 25.14.
//
//go:embed condor.txt
var condorAttributes string

var known = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.Lines(condorAttributes) {
		names[strings.ToLower(strings.TrimSpace(name))] = true
	}
	return names
})

// reserved matches names, in lower case, of which HTCondor or a common configuration of it makes more: of machines and
// their attributes, of containers, of hooks and credentials, and its own.
var reserved = regexp.MustCompile(
	`^(_|htc(job|workflow|pool|node)|machineattr|singularity|apptainer|docker|container|` +
		`oauth|x509|hook|jobhook|system_|vm_|ec2|gce|azure|grid|dagman|transform|transfer|remote_|last|periodic|onexit)|` +
		`_containerport$|hook`,
)

// Matches reports whether one of these patterns, in which * and ? stand for what they do in a shell, stands for an
// attribute that HTCondor itself does not know: those that it acts upon no pattern gives away.
func Matches(patterns []string, attribute string) bool {
	lower := strings.ToLower(attribute)
	if known()[lower] || reserved.MatchString(lower) {
		return false
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(strings.ToLower(pattern), lower)
		return err == nil && is
	})
}

// Functions are those that an expression may call: none returns a text or a list longer than what it is given. A list
// becomes a text (of toLower, toUpper, strcmp) as it was written; split, whose pieces would be quoted then, is
// therefore not among them.
var Functions = []string{
	"ifThenElse", "isUndefined", "isError", "isString", "isInteger", "isReal", "isBoolean", "isList",
	"int", "real", "bool", "floor", "ceiling", "round", "quantize", "pow", "min", "max", "sum", "avg", "random", "time",
	"size", "member", "identicalMember", "anyCompare", "allCompare",
	"strcmp", "stricmp", "substr", "toLower", "toUpper", "regexp", "regexpMember",
	"stringListMember", "stringListIMember", "stringListSubsetMatch", "stringListISubsetMatch", "stringListsIntersect",
	"stringList_regexpMember", "stringListSize", "stringListSum", "stringListAvg", "stringListMin", "stringListMax",
	"versioncmp", "versionGT", "versionGE", "versionLT", "versionLE", "versionEQ", "version_in_range",
}

// CustomRequest matches a request for a resource of the pool's own.
var CustomRequest = regexp.MustCompile(`^request_[a-z][a-z0-9_]*$`)
