// Package argoplugin runs steps of Argo workflows as HTCJobs and HTCWorkflows. It is an executor plugin: a sidecar of
// the one pod, Argo's agent, that a workflow has for all steps which need no pod of their own.
//
// Argo's agent asks a plugin about each step, without saying which step it is, and writes the answers itself, ten
// seconds apart. It never says that a step is over. So the agent gets an empty answer (server.go), and the plugin does
// as the agent does: it watches the workflow's WorkflowTaskSet, whose spec has the steps to be executed by their ids,
// and writes what becomes of them into its status. Argo's controller takes results from there, and a step that is over,
// for whatever reason, out of both; where it has no right to do so, the workflow says what is over.
//
// A pass (agent.go) reads the task set and these objects, decides (decide.go, pure), and acts:
//
//	no object for a step         create it; its name follows from workflow, start and step, so that it can exist only once
//	the object has ended         report that, with outputs, exit code and the reason of a failure
//	otherwise                    report Pending, and how far it is
//	an object without its step   delete it, unless it has ended: the workflow was stopped, or is out of time
//
// Nothing is kept between passes that a restart could lose. A report is refused by the apiserver if the task set has
// changed since it was read: Argo would otherwise take it for a step that is already over.
//
// Steps are reported as Pending, never Running, since Argo applies a workflow's deadline only to those.
package argoplugin
