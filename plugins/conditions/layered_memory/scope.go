package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// setupScope has nothing to prepare, unless Dream is off: then what the history holds counts as read, so that it does not pile up in prompts. Existed
// tells whether the scope holds messages.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	last, err := nanobot.LastSession(c)
	if err != nil {
		return nil, err
	}
	if !s.dream.on && !c.ReadOnly {
		if err := skipHistory(c); err != nil {
			return nil, err
		}
	}
	return &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(last != ""), NativeScope: map[string]string{}, Trace: &abi.Trace{BackendName: s.config.Provider}}, nil
}

func skipHistory(c *sdk.Call) error {
	d, err := readDream(c)
	if err != nil {
		return err
	}
	list, _, err := newest(c, d.Cursor, 1)
	if err != nil || len(list) == 0 {
		return err
	}
	d.Cursor = list[0].cursor
	return d.Save(c, dreamKey)
}

// resetScope counts. The host removes the generation's state, in the transaction that starts the next one.
func resetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	counts, err := count(c)
	if err != nil {
		return nil, err
	}
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.Reset(c, s.config.Provider, counts), nil
}

func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	counts, err := count(c)
	if err != nil {
		return nil, err
	}
	ready, err := s.readiness(c, nil)
	if err != nil {
		return nil, err
	}
	return &abi.Inventory{Kinds: counts, Complete: true, Quiescent: ready.Status == abi.ReadinessReady,
		Trace: &abi.Trace{BackendName: s.config.Provider, NativeOperation: "state_list"}}, nil
}

// count counts messages, files, log entries and versions.
func count(c *sdk.Call) ([]abi.InventoryKind, error) {
	messages, err := nanobot.CountMessages(c)
	if err != nil {
		return nil, err
	}
	files, err := readFolder(c)
	if err != nil {
		return nil, err
	}
	long := abi.InventoryKind{Kind: "long_term"}
	var digest sdk.Digest
	for _, f := range files {
		digest.Add(f.path + "\n" + f.text + "\n")
		if f.text != "" {
			long.Count++
		}
	}
	long.Digest = digest.Hex()
	_, history, err := c.Read(abi.StateReadRequest{Log: historyLog, Reverse: true, Limit: 1})
	if err != nil {
		return nil, err
	}
	_, versions, err := c.Read(abi.StateReadRequest{Log: versionLog, Reverse: true, Limit: 1})
	return []abi.InventoryKind{messages, long, {Kind: "history", Count: history}, {Kind: "version", Count: versions}}, err
}

// health asks the endpoint for its models: whether it is there, and takes the key. Without it what is recorded is stored all the same.
func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	return nanobot.Health(c, s.config, s.llm, []string{"message", "long_term", "history"}), nil
}
