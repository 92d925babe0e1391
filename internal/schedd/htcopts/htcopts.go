// Package htcopts lists what htcopts takes everywhere. Unlike the rest of schedd it is also built for users' machines.
package htcopts

import "regexp"

// Attributes may be set with +Name or MY.Name: those that sites document for their users, and none that HTCondor
// itself acts upon.
var Attributes = []string{
	"JobFlavour", "MaxRuntime", "AccountingGroup", "SendCredential", "WantOS", "BigMemJob",
	"ProjectName", "DESIRED_Sites", "DESIRED_CMS_Sites", "UNDESIRED_Sites",
	"REQUIRED_OS", "WantScienceGatewayJob", "Experiment", "JobDescription",
	"WantGPULab", "GPUJobLength", "is_resumable", "JobDurationCategory", "RequestRuntime", "MaxRuntimeHours",
	"ContainerOS",
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
