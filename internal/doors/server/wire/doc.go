// Package wire holds what the HTTP door and its client must agree on beyond package abi: the paths, the bodies that the
// contract does not name, and problem documents.
package wire

// ScopedTokenPrefix distinguishes a scoped token from the slot's own.
const ScopedTokenPrefix = "mhs1."

// Paths of the door. The OpenAPI document says what each takes and answers.
const (
	PathEvents       = "/v1/events"
	PathEventsBatch  = "/v1/events/batch"
	PathEventsList   = "/v1/events/list"
	PathRetrieve     = "/v1/retrieve"
	PathFormat       = "/v1/format"
	PathScopes       = "/v1/scopes"
	PathScopesReset  = "/v1/scopes/reset"
	PathScopesList   = "/v1/scopes/list"
	PathMode         = "/v1/mode"
	PathHealth       = "/v1/health"
	PathCapabilities = "/v1/capabilities"
	PathManifest     = "/v1/manifest"
	PathReadiness    = "/v1/readiness"
	PathInventory    = "/v1/inventory"
	PathFeedback     = "/v1/feedback"
	PathForget       = "/v1/forget"
	PathPersona      = "/v1/forget/persona"
	PathMutations    = "/v1/mutations"
	PathProvenance   = "/v1/provenance"
	PathNativeQuery  = "/v1/native-query"
	PathSwap         = "/v1/swap"
	PathOperations   = "/v1/operations"
	PathModules      = "/v1/modules"
	PathCluster      = "/v1/cluster"
	PathRuns         = "/v1/runs"
	PathRunsReport   = "/v1/runs/report"

	PathArchive       = "/v1/archive"
	PathArchivePage   = "/v1/archive/page"
	PathArchiveEvents = "/v1/archive/events"
	PathArchiveCheck  = "/v1/archive/check"
	PathBackup        = "/v1/backup"

	PathBackfill      = "/v1/backfill"
	PathBackfillGive  = "/v1/backfill/events"
	PathBackfillPlan  = "/v1/backfill/plan"
	PathBackfillServe = "/v1/backfill/serve"
	PathBackfillStop  = "/v1/backfill/stop"
	PathCompare       = "/v1/compare"
	PathShadows       = "/v1/shadows"
	PathImport        = "/v1/import"
	PathImportConfirm = "/v1/import/confirm"
	PathShadowAnswers = "/v1/shadows/answers"

	PathLive    = "/healthz"
	PathReady   = "/readyz"
	PathMetrics = "/metrics"
	PathOpenAPI = "/openapi.json"
	PathDocs    = "/docs"
	// PathPage is the page that shows the slot; its files are below.
	PathPage = "/page/"
)

// HeaderDoor says through which other door a request came before it came here: DoorHook or DoorMCP.
const (
	HeaderDoor = "Memhost-Door"
	DoorHook   = "hook"
	DoorMCP    = "mcp"
)

// HeaderOrigin says who asks; its one value with a meaning is host.OriginPage.
const HeaderOrigin = "Memhost-Origin"

// Media types of the door.
const (
	MediaJSON    = "application/json"
	MediaProblem = "application/problem+json"
	// MediaLines is a stream of JSON objects, each on a line of its own.
	MediaLines = "application/x-ndjson"
	// MediaGzip is a file compressed with gzip.
	MediaGzip = "application/gzip"
)

// Names of operations that are the door's own, for errors. The others are in package abi.
const (
	OpMode         = "mode"
	OpCapabilities = "capabilities"
	OpManifest     = "manifest"
	OpSwap         = "swap"
	OpOperations   = "operations"
	OpListScopes   = "list_scopes"
	OpSearchScopes = "search_scopes"
	OpListEvents   = "list_events"
	OpListModules  = "list_modules"
	OpCluster      = "cluster"
	OpListRuns     = "list_runs"
	OpRunReport    = "run_report"
	OpErasePersona = "erase_persona"
	OpArchiveStats = "archive_stats"
	OpArchivePage  = "archive_page"
	OpArchiveAdd   = "archive_add"
	OpArchiveCheck = "archive_check"
	OpBackup       = "backup"

	OpBackfill       = "backfill"
	OpBackfillStatus = "backfill_status"
	OpBackfillGive   = "backfill_events"
	OpBackfillPlan   = "backfill_plan"
	OpBackfillServe  = "backfill_serve"
	OpBackfillStop   = "backfill_stop"
	OpCompare        = "compare"
	OpShadows        = "shadows"
	OpShadowAnswers  = "shadow_answers"

	OpImportCheck    = "import_check"
	OpImportConfirm  = "import_confirm"
	OpImportProgress = "import_progress"
)
