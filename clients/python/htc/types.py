"""The fields of HTCJobs. Generated from the CRD by make generate: do not edit."""

from __future__ import annotations

from typing import Literal, TypedDict

GROUP = "htc.cern.ch"
VERSION = "v1alpha1"
KIND = "HTCJob"
PLURAL = "htcjobs"

HTCJobSpecCheckpoint = TypedDict(
    "HTCJobSpecCheckpoint",
    {
        "exitCode": "int",
        "files": "list[str]",
        "onEviction": "bool",
    },
    total=False,
)

HTCJobSpecCredentialsSecretKeyRef = TypedDict(
    "HTCJobSpecCredentialsSecretKeyRef",
    {
        "key": "str",
        "name": "str",
    },
    total=False,
)

HTCJobSpecCredentials = TypedDict(
    "HTCJobSpecCredentials",
    {
        "as": "Literal['X509Proxy', 'BearerToken', 'File', 'Registry']",
        "name": "str",
        "secretKeyRef": "HTCJobSpecCredentialsSecretKeyRef",
    },
    total=False,
)

HTCJobSpecInputsConfigMapKeyRef = TypedDict(
    "HTCJobSpecInputsConfigMapKeyRef",
    {
        "key": "str",
        "name": "str",
    },
    total=False,
)

HTCJobSpecInputsJobRef = TypedDict(
    "HTCJobSpecInputsJobRef",
    {
        "name": "str",
        "path": "str",
        "proc": "int | str",
    },
    total=False,
)

HTCJobSpecInputsSecretKeyRef = TypedDict(
    "HTCJobSpecInputsSecretKeyRef",
    {
        "key": "str",
        "name": "str",
    },
    total=False,
)

HTCJobSpecInputs = TypedDict(
    "HTCJobSpecInputs",
    {
        "artifact": "str",
        "configMapKeyRef": "HTCJobSpecInputsConfigMapKeyRef",
        "jobRef": "HTCJobSpecInputsJobRef",
        "name": "str",
        "optional": "bool",
        "secretKeyRef": "HTCJobSpecInputsSecretKeyRef",
        "unpack": "Literal['Directory', 'Here']",
        "upload": "str",
        "url": "str",
    },
    total=False,
)

HTCJobSpecItemsFromConfigMapKeyRef = TypedDict(
    "HTCJobSpecItemsFromConfigMapKeyRef",
    {
        "key": "str",
        "name": "str",
    },
    total=False,
)

HTCJobSpecItemsFromJobRef = TypedDict(
    "HTCJobSpecItemsFromJobRef",
    {
        "name": "str",
        "path": "str",
        "proc": "int | str",
    },
    total=False,
)

HTCJobSpecItemsFrom = TypedDict(
    "HTCJobSpecItemsFrom",
    {
        "configMapKeyRef": "HTCJobSpecItemsFromConfigMapKeyRef",
        "jobRef": "HTCJobSpecItemsFromJobRef",
        "path": "str",
        "step": "str",
    },
    total=False,
)

HTCJobSpecLanding = TypedDict(
    "HTCJobSpecLanding",
    {
        "directory": "str",
        "files": "dict[str, str]",
        "stderr": "str",
        "stdout": "str",
    },
    total=False,
)

HTCJobSpecMemoryRetry = TypedDict(
    "HTCJobSpecMemoryRetry",
    {
        "maxMemory": "int | str",
        "maxRetries": "int",
    },
    total=False,
)

HTCJobSpecOutputs = TypedDict(
    "HTCJobSpecOutputs",
    {
        "artifact": "str",
        "path": "str",
        "url": "str",
    },
    total=False,
)

HTCJobSpecPool = TypedDict(
    "HTCJobSpecPool",
    {
        "collector": "str",
        "name": "str",
        "schedd": "str",
        "secretName": "str",
    },
    total=False,
)

HTCJobSpecPorts = TypedDict(
    "HTCJobSpecPorts",
    {
        "port": "int",
        "proc": "int",
    },
    total=False,
)

HTCJobSpecResources = TypedDict(
    "HTCJobSpecResources",
    {
        "cpus": "int | str",
        "disk": "int | str",
        "gpus": "int | str",
        "memory": "int | str",
    },
    total=False,
)

HTCJobSpecScriptAfter = TypedDict(
    "HTCJobSpecScriptAfter",
    {
        "args": "list[str]",
        "command": "str",
        "source": "str",
    },
    total=False,
)

HTCJobSpecScriptBefore = TypedDict(
    "HTCJobSpecScriptBefore",
    {
        "args": "list[str]",
        "command": "str",
        "source": "str",
    },
    total=False,
)

HTCJobSpecScript = TypedDict(
    "HTCJobSpecScript",
    {
        "after": "HTCJobSpecScriptAfter",
        "args": "list[str]",
        "before": "HTCJobSpecScriptBefore",
        "command": "str",
        "executable": "str",
        "image": "str",
        "queue": "int",
        "source": "str",
        "workdir": "str",
        "writableRoot": "bool",
    },
    total=False,
)

HTCJobSpecSuccessPolicyRules = TypedDict(
    "HTCJobSpecSuccessPolicyRules",
    {
        "succeededCount": "int",
        "succeededIndexes": "str",
    },
    total=False,
)

HTCJobSpecSuccessPolicy = TypedDict(
    "HTCJobSpecSuccessPolicy",
    {
        "rules": "list[HTCJobSpecSuccessPolicyRules]",
    },
    total=False,
)

HTCJobSpec = TypedDict(
    "HTCJobSpec",
    {
        "accountingGroup": "str",
        "activeDeadlineSeconds": "int",
        "checkpoint": "HTCJobSpecCheckpoint",
        "completeAfterOutput": "bool",
        "credentials": "list[HTCJobSpecCredentials]",
        "environment": "dict[str, str]",
        "heldDeadlineSeconds": "int",
        "htcopts": "str",
        "idleDeadlineSeconds": "int",
        "inputs": "list[HTCJobSpecInputs]",
        "interactive": "bool",
        "items": "list[dict[str, str]]",
        "itemsFrom": "HTCJobSpecItemsFrom",
        "keepOnFailure": "str",
        "landing": "HTCJobSpecLanding",
        "logsPod": "bool",
        "managedBy": "str",
        "maxFailures": "int | str",
        "memoryRetry": "HTCJobSpecMemoryRetry",
        "name": "str",
        "nodes": "int",
        "onMaxFailures": "Literal['RemoveWaiting', 'RemoveAll']",
        "outputs": "list[HTCJobSpecOutputs]",
        "parallelism": "int",
        "parameters": "dict[str, list[str]]",
        "pool": "HTCJobSpecPool",
        "ports": "list[HTCJobSpecPorts]",
        "priority": "int",
        "queue": "int",
        "requirements": "str",
        "resources": "HTCJobSpecResources",
        "result": "str",
        "retries": "int",
        "runDeadlineSeconds": "int",
        "script": "HTCJobSpecScript",
        "successExitCodes": "list[int]",
        "successPolicy": "HTCJobSpecSuccessPolicy",
        "suspend": "bool",
        "ttlSecondsAfterFinished": "int",
    },
    total=False,
)

HTCJobStatusConditions = TypedDict(
    "HTCJobStatusConditions",
    {
        "lastTransitionTime": "str",
        "message": "str",
        "observedGeneration": "int",
        "reason": "str",
        "status": "Literal['True', 'False', 'Unknown']",
        "type": "str",
    },
    total=False,
)

HTCJobStatusEffectiveResources = TypedDict(
    "HTCJobStatusEffectiveResources",
    {
        "cpus": "int | str",
        "disk": "int | str",
        "gpus": "int | str",
        "memory": "int | str",
    },
    total=False,
)

HTCJobStatusEffective = TypedDict(
    "HTCJobStatusEffective",
    {
        "accountingGroup": "str",
        "activeDeadlineSeconds": "int",
        "heldDeadlineSeconds": "int",
        "idleDeadlineSeconds": "int",
        "pool": "str",
        "resources": "HTCJobStatusEffectiveResources",
        "retries": "int",
        "runDeadlineSeconds": "int",
        "ttlSecondsAfterFinished": "int",
    },
    total=False,
)

HTCJobStatusFailures = TypedDict(
    "HTCJobStatusFailures",
    {
        "exitCode": "int",
        "item": "str",
        "jobid": "str",
        "message": "str",
        "proc": "int",
        "reason": "str",
        "signal": "int",
        "stderr": "str",
    },
    total=False,
)

HTCJobStatusOutputs = TypedDict(
    "HTCJobStatusOutputs",
    {
        "artifact": "str",
        "digest": "str",
        "path": "str",
        "proc": "int",
        "size": "int",
        "url": "str",
    },
    total=False,
)

HTCJobStatusPartial = TypedDict(
    "HTCJobStatusPartial",
    {
        "failed": "int",
        "procs": "str",
        "succeeded": "int",
    },
    total=False,
)

HTCJobStatusUsageCpu = TypedDict(
    "HTCJobStatusUsageCpu",
    {
        "median": "int | str",
        "requested": "int | str",
        "worst": "int | str",
        "worstProc": "int",
    },
    total=False,
)

HTCJobStatusUsageDisk = TypedDict(
    "HTCJobStatusUsageDisk",
    {
        "median": "int | str",
        "requested": "int | str",
        "worst": "int | str",
        "worstProc": "int",
    },
    total=False,
)

HTCJobStatusUsageMemory = TypedDict(
    "HTCJobStatusUsageMemory",
    {
        "median": "int | str",
        "requested": "int | str",
        "worst": "int | str",
        "worstProc": "int",
    },
    total=False,
)

HTCJobStatusUsage = TypedDict(
    "HTCJobStatusUsage",
    {
        "advice": "str",
        "cpu": "HTCJobStatusUsageCpu",
        "disk": "HTCJobStatusUsageDisk",
        "jobs": "int",
        "memory": "HTCJobStatusUsageMemory",
    },
    total=False,
)

HTCJobStatus = TypedDict(
    "HTCJobStatus",
    {
        "active": "int",
        "attempt": "int",
        "clusterId": "int",
        "completionTime": "str",
        "conditions": "list[HTCJobStatusConditions]",
        "duration": "str",
        "effective": "HTCJobStatusEffective",
        "exitCode": "int",
        "failed": "int",
        "failures": "list[HTCJobStatusFailures]",
        "held": "int",
        "idle": "int",
        "inputsDigest": "str",
        "itemsDigest": "str",
        "jobid": "list[str]",
        "lastChecked": "str",
        "message": "str",
        "observedGeneration": "int",
        "outputFetched": "bool",
        "outputs": "list[HTCJobStatusOutputs]",
        "parallelism": "int",
        "partial": "HTCJobStatusPartial",
        "phase": "Literal['Pending', 'Submitting', 'Idle', 'Running', 'Held', 'Suspended', 'Succeeded', 'Failed', 'Removed']",
        "reason": "str",
        "rerun": "str",
        "result": "str",
        "running": "int",
        "schedd": "str",
        "specHash": "str",
        "startTime": "str",
        "startedAt": "str",
        "stopped": "int",
        "succeeded": "int",
        "usage": "HTCJobStatusUsage",
        "user": "str",
        "waiting": "int",
    },
    total=False,
)
