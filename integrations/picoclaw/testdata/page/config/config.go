package config

type BuiltinHookConfig struct{}
