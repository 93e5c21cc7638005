package report

import (
	"encoding/json"
	"fmt"

	"github.com/memhost/memhost/abi"
)

// ParseRunManifest parses the manifest.json of a run.
//
// Errors: invalid_argument, with reason manifest_version for an unsupported version and manifest_form for anything
// else.
func ParseRunManifest(text []byte) (*RunManifest, error) {
	var form struct {
		Manifest       *int64  `json:"manifest"`
		Provider       *string `json:"provider"`
		LoadGeneration *int64  `json:"load_generation"`
	}
	if err := json.Unmarshal(text, &form); err != nil || form.Manifest == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "is no run manifest").WithReason("manifest_form").
			WithHint("`memhost run` writes one into its data folder: manifest.json")
	}
	if *form.Manifest != RunManifestVersion {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("is a run manifest of version %d, this program reads version %d", *form.Manifest,
				RunManifestVersion)).
			WithReason("manifest_version").WithHint("verify it with the memhost that wrote it")
	}
	if form.Provider == nil || form.LoadGeneration == nil {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			"is no run manifest: it names no provider that was loaded; a module's own manifest.json is another thing").
			WithReason("manifest_form")
	}
	m := new(RunManifest)
	if err := abi.Unmarshal(text, m); err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "is no run manifest: "+abi.AsError(err).Message,
			err).WithReason("manifest_form")
	}
	return m, nil
}

// ManifestDifference is a field in which a run manifest differs from what it is compared with.
type ManifestDifference struct {
	// Against is manifest (it contradicts itself), module or config.
	Against string `json:"against"`
	// Field is the manifest's field: module.sha256.
	Field string `json:"field"`
	// Manifest is the manifest's value, Found the actual one.
	Manifest string `json:"manifest"`
	Found    string `json:"found"`
}
