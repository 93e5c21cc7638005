// The types of the slot's HTTP API, under short names.
import type { components } from "./schema";

type All = components["schemas"];
export type Scope = All["MemoryScope"];
export type ListedScope = All["ListedScope"];
export type ScopeList = All["ScopeList"];
export type ListedEvent = All["ListedEvent"];
export type EventList = All["EventList"];
export type MemoryEvent = All["MemoryEvent"];
export type ArchivePage = All["ArchivePage"];
export type Evidence = All["Evidence"];
export type Provenance = All["Provenance"];
export type ProvenanceItem = All["ProvenanceItem"];
export type Result = All["RetrieveResult"];
export type Trace = All["Trace"];
export type IO = All["IO"];
export type Manifest = All["RunManifest"];
export type Mode = All["ModeReceipt"];
export type Health = All["BackendHealth"];
export type Readiness = All["BackendReadiness"];
export type Step = All["RunStep"];
export type Line = All["OperationLine"];
export type Capabilities = All["Capabilities"];
export type NativeDecl = All["NativeDecl"];
export type ShowDecl = All["ShowDecl"];
export type NativeResult = All["NativeQueryResult"];
export type MutationReceipt = All["MutationReceipt"];
export type ModuleList = All["ModuleList"];
export type ListedModule = All["Module"];
export type Run = All["Run"];
export type RunList = All["RunList"];
export type ShadowList = All["ShadowList"];
export type Shadow = All["Shadow"];
export type ShadowAnswer = All["ShadowAnswer"];
export type ShadowAnswers = All["ShadowAnswers"];
export type Comparison = All["Comparison"];
export type Backfill = All["Backfill"];
export type BackfillPlan = All["BackfillPlan"];
export type ImportCheck = All["ImportCheck"];
export type ImportProgress = All["ImportProgress"];
export type FeedbackReceipt = All["FeedbackReceipt"];
export type WriteReceipt = All["WriteReceipt"];
export type ForgetReceipt = All["ForgetReceipt"];
export type ResetReceipt = All["ResetReceipt"];

// Settings are what the slot says of its page.
export interface Settings {
  mode: string;
  token: boolean;
  views: string[];
}

// Schema is as much of JSON Schema as the forms know.
export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  oneOf?: Schema[];
}

// Declared is a module's manifest, as far as the page reads it.
export interface Declared {
  abi: string;
  description?: string;
  providers: { name: string; kind: string; note?: string }[];
  config_schema?: Schema;
  routes?: { name: string; class: string; origin: string; method?: string; path?: string; statement?: string }[];
  native_queries?: NativeDecl[];
  native_mutations?: NativeDecl[];
  model_calls?: { operation: string; model: string; about: string; pointer?: string; equals?: unknown }[];
  origins?: { name: string; from?: string }[];
  secrets?: { from: string; origin?: string }[];
}

// declaredBy is the manifest of a module.
export const declaredBy = (m: ListedModule) => m.manifest as Declared;

// calls tells whether a module has to ask somebody on the network.
export function calls(m: ListedModule) {
  const { config_schema: schema, origins } = declaredBy(m);
  return (origins ?? []).some(({ from }) => {
    const key = (from ?? "").split("/")[1] ?? "";
    return key === "" || schema?.required?.includes(key) || schema?.properties?.[key]?.default !== undefined;
  });
}

// alone tells whether a module needs no configuration, and without one has nobody to call.
export const alone = (m: ListedModule) => (declaredBy(m).config_schema?.required ?? []).length === 0 && !calls(m);
