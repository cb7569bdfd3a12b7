# Generated from template.yaml by `make generate`. Do not edit.

variable "retention_days" {
  description = "Days an artifact is kept after its last use, also what is stored already."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = floor(var.retention_days) == var.retention_days && var.retention_days >= 1 && var.retention_days <= 3650
    error_message = "retention_days must be a whole number, at least 1 and at most 3650."
  }
}

variable "retention_counts_from" {
  description = "What the retention counts from: an artifact's last `use`, or its `upload`."
  type        = string
  default     = "use"
  nullable    = false

  validation {
    condition     = contains(["use", "upload"], var.retention_counts_from)
    error_message = "retention_counts_from must be one of use, upload."
  }
}

variable "scoped_retention_days" {
  description = "Days an artifact in an [own scope](protection.md#scopes) is kept, if less than `RetentionDays`."
  type        = number
  default     = 7
  nullable    = false

  validation {
    condition     = floor(var.scoped_retention_days) == var.scoped_retention_days && var.scoped_retention_days >= 1 && var.scoped_retention_days <= 3650
    error_message = "scoped_retention_days must be a whole number, at least 1 and at most 3650."
  }
}

variable "default_quota_bytes" {
  description = "Bytes a team may store (100 GB), half of it for each further team of its creator. 0 means no limit. `larder teams set --quota` sets another for one team."
  type        = number
  default     = 100000000000
  nullable    = false

  validation {
    condition     = floor(var.default_quota_bytes) == var.default_quota_bytes && var.default_quota_bytes >= 0 && var.default_quota_bytes <= 1000000000000000000
    error_message = "default_quota_bytes must be a whole number, at least 0 and at most 1000000000000000000."
  }
}

variable "personal_quota_bytes" {
  description = "Bytes a user may store without a team (5 GB). 0 means no limit. `larder users set --quota` sets another for one user."
  type        = number
  default     = 5000000000
  nullable    = false

  validation {
    condition     = floor(var.personal_quota_bytes) == var.personal_quota_bytes && var.personal_quota_bytes >= 0 && var.personal_quota_bytes <= 1000000000000000000
    error_message = "personal_quota_bytes must be a whole number, at least 0 and at most 1000000000000000000."
  }
}

variable "unverified_quota_bytes" {
  description = "Bytes a user may store without a team until their email address is proven (1 GB), if less than `PersonalQuotaBytes`. 0 means nothing. A user's own quota replaces it."
  type        = number
  default     = 1000000000
  nullable    = false

  validation {
    condition     = floor(var.unverified_quota_bytes) == var.unverified_quota_bytes && var.unverified_quota_bytes >= 0 && var.unverified_quota_bytes <= 1000000000000000000
    error_message = "unverified_quota_bytes must be a whole number, at least 0 and at most 1000000000000000000."
  }
}

variable "scoped_share" {
  description = "Percent of a team's quota that all own scopes may take together."
  type        = number
  default     = 50
  nullable    = false

  validation {
    condition     = floor(var.scoped_share) == var.scoped_share && var.scoped_share >= 1 && var.scoped_share <= 100
    error_message = "scoped_share must be a whole number, at least 1 and at most 100."
  }
}

variable "max_stored_bytes" {
  description = "Bytes all teams and users may store together (1 TB). 0 means no limit. The last tenth is for those who store less than a thousandth of it."
  type        = number
  default     = 1000000000000
  nullable    = false

  validation {
    condition     = floor(var.max_stored_bytes) == var.max_stored_bytes && var.max_stored_bytes >= 0 && var.max_stored_bytes <= 1000000000000000000
    error_message = "max_stored_bytes must be a whole number, at least 0 and at most 1000000000000000000."
  }
}

variable "over_quota" {
  description = "An upload over the quota: `evict` deletes the least recently used artifacts, `refuse` refuses the upload."
  type        = string
  default     = "evict"
  nullable    = false

  validation {
    condition     = contains(["evict", "refuse"], var.over_quota)
    error_message = "over_quota must be one of evict, refuse."
  }
}

variable "event_retention_days" {
  description = "Days single usage events are kept. Daily figures stay."
  type        = number
  default     = 90
  nullable    = false

  validation {
    condition     = floor(var.event_retention_days) == var.event_retention_days && var.event_retention_days >= 1 && var.event_retention_days <= 3650
    error_message = "event_retention_days must be a whole number, at least 1 and at most 3650."
  }
}

variable "run_retention_days" {
  description = "Days reported [runs](usage.md#runs) are kept."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = floor(var.run_retention_days) == var.run_retention_days && var.run_retention_days >= 1 && var.run_retention_days <= 3650
    error_message = "run_retention_days must be a whole number, at least 1 and at most 3650."
  }
}

variable "audit_retention_days" {
  description = "Days audit entries are kept."
  type        = number
  default     = 365
  nullable    = false

  validation {
    condition     = floor(var.audit_retention_days) == var.audit_retention_days && var.audit_retention_days >= 1 && var.audit_retention_days <= 3650
    error_message = "audit_retention_days must be a whole number, at least 1 and at most 3650."
  }
}

variable "upload_url_seconds" {
  description = "Seconds in which a direct upload must begin: the validity of its presigned URL."
  type        = number
  default     = 600
  nullable    = false

  validation {
    condition     = floor(var.upload_url_seconds) == var.upload_url_seconds && var.upload_url_seconds >= 30 && var.upload_url_seconds <= 3600
    error_message = "upload_url_seconds must be a whole number, at least 30 and at most 3600."
  }
}

variable "download_url_seconds" {
  description = "Seconds in which a redirected download must begin: the validity of its presigned URL."
  type        = number
  default     = 600
  nullable    = false

  validation {
    condition     = floor(var.download_url_seconds) == var.download_url_seconds && var.download_url_seconds >= 30 && var.download_url_seconds <= 3600
    error_message = "download_url_seconds must be a whole number, at least 30 and at most 3600."
  }
}

variable "inline_download_bytes" {
  description = "The largest unsigned artifact, in bytes, that a function returns itself. Larger ones redirect to S3: a round trip more, and less cost."
  type        = number
  default     = 262144
  nullable    = false

  validation {
    condition     = floor(var.inline_download_bytes) == var.inline_download_bytes && var.inline_download_bytes >= 0 && var.inline_download_bytes <= 4700000
    error_message = "inline_download_bytes must be a whole number, at least 0 and at most 4700000."
  }
}

variable "inline_limit_bytes" {
  description = "The largest signed artifact, in bytes, that a function returns itself. Larger ones redirect to S3, which may lose the signature. Lambda allows about 4.7 MB."
  type        = number
  default     = 4700000
  nullable    = false

  validation {
    condition     = floor(var.inline_limit_bytes) == var.inline_limit_bytes && var.inline_limit_bytes >= 0 && var.inline_limit_bytes <= 4700000
    error_message = "inline_limit_bytes must be a whole number, at least 0 and at most 4700000."
  }
}

variable "edge_downloads" {
  description = "The redirects that the [edge](edge.md#cost) carries: `all`, or those of `tagged` (signed) artifacts. S3 carries the others."
  type        = string
  default     = "all"
  nullable    = false

  validation {
    condition     = contains(["all", "tagged"], var.edge_downloads)
    error_message = "edge_downloads must be one of all, tagged."
  }
}

variable "max_upload_bytes" {
  description = "The largest artifact, in bytes. S3 takes at most 5 GiB."
  type        = number
  default     = 5368709120
  nullable    = false

  validation {
    condition     = floor(var.max_upload_bytes) == var.max_upload_bytes && var.max_upload_bytes >= 1 && var.max_upload_bytes <= 5368709120
    error_message = "max_upload_bytes must be a whole number, at least 1 and at most 5368709120."
  }
}

variable "max_events" {
  description = "Usage events in one request."
  type        = number
  default     = 500
  nullable    = false

  validation {
    condition     = floor(var.max_events) == var.max_events && var.max_events >= 1 && var.max_events <= 1000
    error_message = "max_events must be a whole number, at least 1 and at most 1000."
  }
}

variable "max_query_hashes" {
  description = "Hashes in one query."
  type        = number
  default     = 500
  nullable    = false

  validation {
    condition     = floor(var.max_query_hashes) == var.max_query_hashes && var.max_query_hashes >= 1 && var.max_query_hashes <= 1000
    error_message = "max_query_hashes must be a whole number, at least 1 and at most 1000."
  }
}

variable "default_key_length" {
  description = "Characters of a new key after its prefix: random letters, and a checksum of six."
  type        = number
  default     = 64
  nullable    = false

  validation {
    condition     = floor(var.default_key_length) == var.default_key_length && var.default_key_length >= 64 && var.default_key_length <= 128
    error_message = "default_key_length must be a whole number, at least 64 and at most 128."
  }
}

variable "default_key_prefix" {
  description = "The prefix of a new key if the request names none: letters, digits and `. _ : ~ -`, not beginning with `vca_`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.default_key_prefix) <= 32
    error_message = "default_key_prefix must have at most 32 characters."
  }

  validation {
    condition     = can(regex("^([A-Za-z0-9_.:~-]{1,32})?$", var.default_key_prefix)) && !can(regex("^vca_", var.default_key_prefix))
    error_message = "default_key_prefix must be up to 32 letters, digits and . _ : ~ -, and not begin with vca_."
  }
}

variable "minimum_key_prefix_length" {
  description = "The fewest characters of a prefix."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = floor(var.minimum_key_prefix_length) == var.minimum_key_prefix_length && var.minimum_key_prefix_length >= 1 && var.minimum_key_prefix_length <= 32
    error_message = "minimum_key_prefix_length must be a whole number, at least 1 and at most 32."
  }
}

variable "maximum_key_prefix_length" {
  description = "The most characters of a prefix."
  type        = number
  default     = 32
  nullable    = false

  validation {
    condition     = floor(var.maximum_key_prefix_length) == var.maximum_key_prefix_length && var.maximum_key_prefix_length >= 1 && var.maximum_key_prefix_length <= 32
    error_message = "maximum_key_prefix_length must be a whole number, at least 1 and at most 32."
  }
}

variable "require_key_name" {
  description = "Whether a new key must have a name."
  type        = bool
  default     = false
  nullable    = false
}

variable "minimum_key_name_length" {
  description = "The fewest characters of a key's name."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = floor(var.minimum_key_name_length) == var.minimum_key_name_length && var.minimum_key_name_length >= 1 && var.minimum_key_name_length <= 100
    error_message = "minimum_key_name_length must be a whole number, at least 1 and at most 100."
  }
}

variable "maximum_key_name_length" {
  description = "The most characters of a key's name."
  type        = number
  default     = 32
  nullable    = false

  validation {
    condition     = floor(var.maximum_key_name_length) == var.maximum_key_name_length && var.maximum_key_name_length >= 1 && var.maximum_key_name_length <= 100
    error_message = "maximum_key_name_length must be a whole number, at least 1 and at most 100."
  }
}

variable "enable_key_metadata" {
  description = "Whether a key may have metadata."
  type        = bool
  default     = true
  nullable    = false
}

variable "default_key_expires_in_seconds" {
  description = "Seconds a new key is valid if the request names no lifetime. 0 means that it never expires."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.default_key_expires_in_seconds) == var.default_key_expires_in_seconds && var.default_key_expires_in_seconds >= 0 && var.default_key_expires_in_seconds <= 3153600000
    error_message = "default_key_expires_in_seconds must be a whole number, at least 0 and at most 3153600000."
  }
}

variable "disable_custom_key_expiry" {
  description = "Whether every key gets the default lifetime."
  type        = bool
  default     = false
  nullable    = false
}

variable "minimum_key_expires_in_seconds" {
  description = "The shortest lifetime that a request may give a key, in seconds."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = floor(var.minimum_key_expires_in_seconds) == var.minimum_key_expires_in_seconds && var.minimum_key_expires_in_seconds >= 1 && var.minimum_key_expires_in_seconds <= 3153600000
    error_message = "minimum_key_expires_in_seconds must be a whole number, at least 1 and at most 3153600000."
  }
}

variable "maximum_key_expires_in_seconds" {
  description = "The longest lifetime that a request may give a key, in seconds (a year)."
  type        = number
  default     = 31536000
  nullable    = false

  validation {
    condition     = floor(var.maximum_key_expires_in_seconds) == var.maximum_key_expires_in_seconds && var.maximum_key_expires_in_seconds >= 1 && var.maximum_key_expires_in_seconds <= 3153600000
    error_message = "maximum_key_expires_in_seconds must be a whole number, at least 1 and at most 3153600000."
  }
}

variable "key_rate_limit_enabled" {
  description = "Whether a new key has a rate limit if the request does not say."
  type        = bool
  default     = false
  nullable    = false
}

variable "key_rate_limit_window_ms" {
  description = "The window of a key's rate limit if the request names none, in milliseconds (a day)."
  type        = number
  default     = 86400000
  nullable    = false

  validation {
    condition     = floor(var.key_rate_limit_window_ms) == var.key_rate_limit_window_ms && var.key_rate_limit_window_ms >= 1 && var.key_rate_limit_window_ms <= 1000000000000
    error_message = "key_rate_limit_window_ms must be a whole number, at least 1 and at most 1000000000000."
  }
}

variable "key_rate_limit_max" {
  description = "Uses of a key in each window if the request names no number."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = floor(var.key_rate_limit_max) == var.key_rate_limit_max && var.key_rate_limit_max >= 1 && var.key_rate_limit_max <= 1000000000000
    error_message = "key_rate_limit_max must be a whole number, at least 1 and at most 1000000000000."
  }
}

variable "store_key_start" {
  description = "Whether a key's prefix and first characters are stored, to recognize it."
  type        = bool
  default     = true
  nullable    = false
}

variable "key_start_length" {
  description = "Stored characters after the prefix."
  type        = number
  default     = 6
  nullable    = false

  validation {
    condition     = floor(var.key_start_length) == var.key_start_length && var.key_start_length >= 1 && var.key_start_length <= 16
    error_message = "key_start_length must be a whole number, at least 1 and at most 16."
  }
}

variable "disable_key_hashing" {
  description = "Whether keys are stored in plain text, for everyone who can read the table. Not recommended."
  type        = bool
  default     = false
  nullable    = false
}

variable "default_key_permissions" {
  description = "The permissions of a new key if the request names none: JSON that maps resources to lists of actions."
  type        = string
  default     = "{\"artifacts\":[\"read\",\"write\"]}"
  nullable    = false

  validation {
    condition     = length(var.default_key_permissions) <= 128
    error_message = "default_key_permissions must have at most 128 characters."
  }

  validation {
    condition     = can(regex("^([{][ -~]*$)", var.default_key_permissions)) && can(regex("^([^\"\\\\]*\"){0,32}[^\"\\\\]*$", var.default_key_permissions))
    error_message = "default_key_permissions must be a JSON object, in ASCII, with at most 32 quotes and no backslash."
  }
}

variable "login_token_expires_in_seconds" {
  description = "Seconds the key of `turbo login` is valid (90 days). The limits on the lifetime of keys apply."
  type        = number
  default     = 7776000
  nullable    = false

  validation {
    condition     = floor(var.login_token_expires_in_seconds) == var.login_token_expires_in_seconds && var.login_token_expires_in_seconds >= 60 && var.login_token_expires_in_seconds <= 31536000
    error_message = "login_token_expires_in_seconds must be a whole number, at least 60 and at most 31536000."
  }
}

variable "max_keys_per_user" {
  description = "API keys that a user may have, or a team own. Expired keys do not count."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = floor(var.max_keys_per_user) == var.max_keys_per_user && var.max_keys_per_user >= 1 && var.max_keys_per_user <= 1000
    error_message = "max_keys_per_user must be a whole number, at least 1 and at most 1000."
  }
}

variable "protect_new_teams" {
  description = "When a new team becomes [protected](protection.md): `when-trusted` by its first rule or key with `artifacts: trust`, `always` from the start, `never` by itself."
  type        = string
  default     = "when-trusted"
  nullable    = false

  validation {
    condition     = contains(["always", "never", "when-trusted"], var.protect_new_teams)
    error_message = "protect_new_teams must be one of always, never, when-trusted."
  }
}

variable "trusted_issuers" {
  description = "Issuers whose id tokens CI jobs can exchange, separated by commas. `*` stands for one label of the host or one part of the path. `larder issuers add` adds others."
  type        = string
  default     = "https://token.actions.githubusercontent.com,https://token.actions.githubusercontent.com/*,https://token.actions.*.ghe.com,https://gitlab.com,https://oidc.circleci.com/org/*,https://agent.buildkite.com,https://vstoken.dev.azure.com/*,https://api.bitbucket.org/2.0/workspaces/*/pipelines-config/identity/oidc"
  nullable    = false

  validation {
    condition     = length(var.trusted_issuers) <= 800
    error_message = "trusted_issuers must have at most 800 characters."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9.:/*,_~ -]*$", var.trusted_issuers))
    error_message = "trusted_issuers must match ^[A-Za-z0-9.:/*,_~ -]*$."
  }
}

variable "ci_token_seconds" {
  description = "Seconds a CI job's token is valid, unless its rule says otherwise."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = floor(var.ci_token_seconds) == var.ci_token_seconds && var.ci_token_seconds >= 300 && var.ci_token_seconds <= 21600
    error_message = "ci_token_seconds must be a whole number, at least 300 and at most 21600."
  }
}

variable "max_ci_tokens_per_hour" {
  description = "Tokens that a team's trusted CI jobs can get in an hour, and as many for its other jobs."
  type        = number
  default     = 5000
  nullable    = false

  validation {
    condition     = floor(var.max_ci_tokens_per_hour) == var.max_ci_tokens_per_hour && var.max_ci_tokens_per_hour >= 1 && var.max_ci_tokens_per_hour <= 1000000
    error_message = "max_ci_tokens_per_hour must be a whole number, at least 1 and at most 1000000."
  }
}

variable "session_for_api_keys" {
  description = "Whether an API key in a header [counts as a session](api-keys.md#a-key-in-place-of-a-session) of its user."
  type        = bool
  default     = false
  nullable    = false
}

variable "disable_session_for_api_keys" {
  description = "Whether an API key never counts as a session, whatever `SessionForApiKeys` says."
  type        = bool
  default     = false
  nullable    = false
}

variable "api_key_headers" {
  description = "The headers that may hold such a key, separated by commas. The first that a request has counts."
  type        = string
  default     = "x-api-key"
  nullable    = false

  validation {
    condition     = length(var.api_key_headers) <= 80
    error_message = "api_key_headers must have at most 80 characters."
  }

  validation {
    condition     = can(regex("^( *[A-Za-z0-9_-]+ *(,|$))*$", var.api_key_headers))
    error_message = "api_key_headers must be names of headers, separated by commas."
  }
}

variable "api_key_schema" {
  description = "Other names for attributes in the table of API keys: JSON that maps a field of the record to its attribute."
  type        = string
  default     = "{}"
  nullable    = false

  validation {
    condition     = length(var.api_key_schema) <= 400
    error_message = "api_key_schema must have at most 400 characters."
  }

  validation {
    condition     = can(regex("^([{][ -~]*$)", var.api_key_schema)) && can(regex("^([^\"\\\\]*\"){0,64}[^\"\\\\]*$", var.api_key_schema))
    error_message = "api_key_schema must be JSON in ASCII, with at most 64 quotes and no backslash."
  }
}

variable "extensions" {
  description = "A module with [functions of your own](#custom-functions), such as `company.larder`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.extensions) <= 64
    error_message = "extensions must have at most 64 characters."
  }

  validation {
    condition     = can(regex("^([A-Za-z0-9_]+([.][A-Za-z0-9_]+)*)?$", var.extensions))
    error_message = "extensions must be the name of a module, such as company.larder."
  }
}

variable "operator_emails" {
  description = "The [operators'](api-keys.md#operators) email addresses, separated by commas. On the local cloud, `operator@larder.local`."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.operator_emails) <= 296
    error_message = "operator_emails must have at most 296 characters."
  }

  validation {
    condition     = can(regex("^([ -~]*$|[ -\\x{FFFF}]{0,49}$)", var.operator_emails)) && can(regex("^( *[^@\\s,\"\\\\]+@[^@\\s,\"\\\\]+ *(,|$))*$", var.operator_emails))
    error_message = "operator_emails must be email addresses, separated by commas; at most 49 characters if some are not ASCII."
  }
}

variable "enable_email_and_password" {
  description = "Whether people can sign up and sign in with email and password."
  type        = bool
  default     = true
  nullable    = false
}

variable "sign_up_policy" {
  description = "Who can sign up: addresses with an open invitation to a team or of a domain in `AllowedEmailDomains` (`invited`), everyone (`open`), or no one (`closed`). On the local cloud, `open`."
  type        = string
  default     = "invited"
  nullable    = false

  validation {
    condition     = contains(["invited", "open", "closed"], var.sign_up_policy)
    error_message = "sign_up_policy must be one of invited, open, closed."
  }
}

variable "allowed_email_domains" {
  description = "Domains whose email addresses may sign up, separated by commas: `example.com` or `@example.com`. If empty, `SignUpPolicy=open` allows every domain, and `invited` only invited addresses."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.allowed_email_domains) <= 512
    error_message = "allowed_email_domains must have at most 512 characters."
  }

  validation {
    condition     = can(regex("^([ -~]*$|[ -\\x{FFFF}]{0,80}$)", var.allowed_email_domains)) && can(regex("^( *@?[^\\s@,:/*_.\"\\\\]+(\\.[^\\s@,:/*_.\"\\\\]+)* *(,|$))*$", var.allowed_email_domains))
    error_message = "allowed_email_domains must be domains such as example.com, separated by commas; at most 80 characters if some are not ASCII."
  }
}

variable "require_email_verification" {
  description = "Whether users must verify their email address before they can sign in."
  type        = bool
  default     = false
  nullable    = false
}

variable "send_verification_on_sign_up" {
  description = "Whether sign-up sends a link to verify the address. With `RequireEmailVerification` it always does."
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_change_email" {
  description = "Whether users can change their email address."
  type        = bool
  default     = true
  nullable    = false
}

variable "confirm_email_change" {
  description = "Whether a user with a verified address must first confirm a change by a link to the old address."
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_delete_user" {
  description = "Whether users can delete their own account."
  type        = bool
  default     = true
  nullable    = false
}

variable "minimum_password_length" {
  description = "The fewest characters of a password."
  type        = number
  default     = 8
  nullable    = false

  validation {
    condition     = floor(var.minimum_password_length) == var.minimum_password_length && var.minimum_password_length >= 1 && var.minimum_password_length <= 128
    error_message = "minimum_password_length must be a whole number, at least 1 and at most 128."
  }
}

variable "maximum_password_length" {
  description = "The most characters of a password."
  type        = number
  default     = 128
  nullable    = false

  validation {
    condition     = floor(var.maximum_password_length) == var.maximum_password_length && var.maximum_password_length >= 8 && var.maximum_password_length <= 1024
    error_message = "maximum_password_length must be a whole number, at least 8 and at most 1024."
  }
}

variable "refuse_common_passwords" {
  description = "Whether new passwords cannot be one of the most common, such as `12345678`."
  type        = bool
  default     = false
  nullable    = false
}

variable "scrypt_cost" {
  description = "The cost N of scrypt, which hashes passwords: a power of two. Each doubling doubles a sign-in's time and memory."
  type        = number
  default     = 16384
  nullable    = false

  validation {
    condition     = contains([1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144], var.scrypt_cost)
    error_message = "scrypt_cost must be one of 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144."
  }
}

variable "revoke_sessions_on_password_reset" {
  description = "Whether a password reset ends all sessions of the user."
  type        = bool
  default     = true
  nullable    = false
}

variable "session_expires_in_seconds" {
  description = "Seconds a session is valid after its last extension (seven days)."
  type        = number
  default     = 604800
  nullable    = false

  validation {
    condition     = floor(var.session_expires_in_seconds) == var.session_expires_in_seconds && var.session_expires_in_seconds >= 60 && var.session_expires_in_seconds <= 3153600000
    error_message = "session_expires_in_seconds must be a whole number, at least 60 and at most 3153600000."
  }
}

variable "session_max_age_seconds" {
  description = "Seconds after sign-in when a session ends, however often it is extended (90 days)."
  type        = number
  default     = 7776000
  nullable    = false

  validation {
    condition     = floor(var.session_max_age_seconds) == var.session_max_age_seconds && var.session_max_age_seconds >= 60 && var.session_max_age_seconds <= 3153600000
    error_message = "session_max_age_seconds must be a whole number, at least 60 and at most 3153600000."
  }
}

variable "session_update_age_seconds" {
  description = "Seconds after which a session in use is extended again (a day)."
  type        = number
  default     = 86400
  nullable    = false

  validation {
    condition     = floor(var.session_update_age_seconds) == var.session_update_age_seconds && var.session_update_age_seconds >= 0 && var.session_update_age_seconds <= 3153600000
    error_message = "session_update_age_seconds must be a whole number, at least 0 and at most 3153600000."
  }
}

variable "session_fresh_age_seconds" {
  description = "Seconds after sign-in (a day) in which a session may list other sessions and, without the password, change the address, grant `turbo login` a key and delete its user."
  type        = number
  default     = 86400
  nullable    = false

  validation {
    condition     = floor(var.session_fresh_age_seconds) == var.session_fresh_age_seconds && var.session_fresh_age_seconds >= 60 && var.session_fresh_age_seconds <= 3153600000
    error_message = "session_fresh_age_seconds must be a whole number, at least 60 and at most 3153600000."
  }
}

variable "reset_token_expires_in_seconds" {
  description = "Seconds the link to reset a password is valid."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = floor(var.reset_token_expires_in_seconds) == var.reset_token_expires_in_seconds && var.reset_token_expires_in_seconds >= 60 && var.reset_token_expires_in_seconds <= 86400
    error_message = "reset_token_expires_in_seconds must be a whole number, at least 60 and at most 86400."
  }
}

variable "verification_token_expires_in_seconds" {
  description = "Seconds the link to verify an email address is valid."
  type        = number
  default     = 3600
  nullable    = false

  validation {
    condition     = floor(var.verification_token_expires_in_seconds) == var.verification_token_expires_in_seconds && var.verification_token_expires_in_seconds >= 60 && var.verification_token_expires_in_seconds <= 604800
    error_message = "verification_token_expires_in_seconds must be a whole number, at least 60 and at most 604800."
  }
}

variable "disable_team_creation" {
  description = "Whether only operators can create teams over HTTP."
  type        = bool
  default     = false
  nullable    = false
}

variable "max_teams_per_user" {
  description = "Teams a user may create over HTTP, not counting deleted ones. 0 means no limit."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = floor(var.max_teams_per_user) == var.max_teams_per_user && var.max_teams_per_user >= 0 && var.max_teams_per_user <= 1000
    error_message = "max_teams_per_user must be a whole number, at least 0 and at most 1000."
  }
}

variable "max_open_invitations" {
  description = "Open invitations a team may have."
  type        = number
  default     = 50
  nullable    = false

  validation {
    condition     = floor(var.max_open_invitations) == var.max_open_invitations && var.max_open_invitations >= 1 && var.max_open_invitations <= 500
    error_message = "max_open_invitations must be a whole number, at least 1 and at most 500."
  }
}

variable "product_name" {
  description = "The name of the service in mail, on pages and as the sender's name."
  type        = string
  default     = "Larder"
  nullable    = false

  validation {
    condition     = length(var.product_name) <= 64
    error_message = "product_name must have at most 64 characters."
  }
}

variable "email_sender" {
  description = "The address that mail is sent from, without a name. SES must know it or its domain. Empty means that mail stays in the outbox, as always on the local cloud."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.email_sender) <= 254
    error_message = "email_sender must have at most 254 characters."
  }

  validation {
    condition     = can(regex("^([A-Za-z0-9.!#$%&'*+/=?^_~-]+@[A-Za-z0-9.-]+)?$", var.email_sender))
    error_message = "email_sender must be an email address without a name."
  }
}

variable "outbox_retention_days" {
  description = "Days mail is kept in the outbox."
  type        = number
  default     = 7
  nullable    = false

  validation {
    condition     = floor(var.outbox_retention_days) == var.outbox_retention_days && var.outbox_retention_days >= 1 && var.outbox_retention_days <= 365
    error_message = "outbox_retention_days must be a whole number, at least 1 and at most 365."
  }
}

variable "base_url" {
  description = "The origin that clients use, such as `https://cache.example.com`, for links in mail, URLs of artifacts and origin checks. Empty means the API's own address."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.base_url) <= 96
    error_message = "base_url must have at most 96 characters."
  }

  validation {
    condition     = can(regex("^(https?://[A-Za-z0-9_.:-]+/?)?$", var.base_url))
    error_message = "base_url must be an origin such as https://cache.example.com."
  }
}

variable "dual_stack" {
  description = "Whether clients can use IPv6 as well as IPv4, for `DomainName`, which it requires, and for presigned URLs of S3. The API's own address stays IPv4."
  type        = bool
  default     = false
  nullable    = false
}

variable "trusted_origins" {
  description = "Other origins whose pages may call `/api/auth`, sign people in and be redirected to, separated by commas. `*` stands for one part of the host name."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.trusted_origins) <= 256
    error_message = "trusted_origins must have at most 256 characters."
  }

  validation {
    condition     = can(regex("^( *https?://[A-Za-z0-9_.:*-]+/? *(,|$))*$", var.trusted_origins))
    error_message = "trusted_origins must be origins such as https://*.example.com, separated by commas."
  }
}

variable "trusted_proxy_hops" {
  description = "Proxies of your own in front of the API that add to `X-Forwarded-For`: 1 for CloudFront. 0 means that the API's caller is the client."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.trusted_proxy_hops) == var.trusted_proxy_hops && var.trusted_proxy_hops >= 0 && var.trusted_proxy_hops <= 10
    error_message = "trusted_proxy_hops must be a whole number, at least 0 and at most 10."
  }
}

variable "proxy_secret_hash" {
  description = "The SHA-256 of a secret, in base64. Requests without the secret in the header `X-Larder-Proxy-Secret`, which your proxy adds, get 403. Empty means that clients may call the API directly."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = length(var.proxy_secret_hash) <= 44
    error_message = "proxy_secret_hash must have at most 44 characters."
  }

  validation {
    condition     = can(regex("^([A-Za-z0-9+/]{43}=)?$", var.proxy_secret_hash))
    error_message = "proxy_secret_hash must be the output of: openssl dgst -sha256 -binary | base64."
  }
}

variable "http_rate_limit_enabled" {
  description = "Whether Larder limits requests to `/api/auth` by client address and path, wrong passwords by account, and creating teams and inviting people by user."
  type        = bool
  default     = true
  nullable    = false
}

variable "http_rate_limit_window_seconds" {
  description = "The window for paths without a stricter limit, in seconds."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = floor(var.http_rate_limit_window_seconds) == var.http_rate_limit_window_seconds && var.http_rate_limit_window_seconds >= 1 && var.http_rate_limit_window_seconds <= 86400
    error_message = "http_rate_limit_window_seconds must be a whole number, at least 1 and at most 86400."
  }
}

variable "http_rate_limit_max" {
  description = "Requests of one client address to one path in each window."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = floor(var.http_rate_limit_max) == var.http_rate_limit_max && var.http_rate_limit_max >= 1 && var.http_rate_limit_max <= 1000000
    error_message = "http_rate_limit_max must be a whole number, at least 1 and at most 1000000."
  }
}

variable "aws_client" {
  description = "The client for calls to AWS that builds wait for: `wire`, which starts and runs faster, or `boto3`, which all other calls use."
  type        = string
  default     = "wire"
  nullable    = false

  validation {
    condition     = contains(["wire", "boto3"], var.aws_client)
    error_message = "aws_client must be one of wire, boto3."
  }
}

variable "domain_name" {
  description = "A domain of your own, such as cache.example.com, with its CertificateArn."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$", var.domain_name))
    error_message = "domain_name must match ^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$."
  }
}

variable "certificate_arn" {
  description = "ARN of the domain's ACM certificate, in the stack's region. Required for DomainName."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-z0-9-]+)?$", var.certificate_arn))
    error_message = "certificate_arn must match ^(arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/[a-z0-9-]+)?$."
  }
}

variable "disable_execute_api_endpoint" {
  description = "Whether the API refuses requests to its own address, so that clients have to use DomainName."
  type        = bool
  default     = false
  nullable    = false
}

variable "truststore_uri" {
  description = "The address in S3 of the certificate authorities for mutual TLS on DomainName. Clients then need a certificate of one of them. Requires DisableExecuteApiEndpoint. Empty for no mutual TLS."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(s3://[a-z0-9][a-z0-9.-]+/[!-~]+)?$", var.truststore_uri))
    error_message = "truststore_uri must be the address of an object in S3, such as s3://bucket/truststore.pem."
  }
}

variable "truststore_version" {
  description = "The version of the object in TruststoreUri. Empty for the version that is current when TruststoreUri is set."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[!-~]*$", var.truststore_version))
    error_message = "truststore_version must be the version of an object in S3."
  }
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds the role of every function. Empty for none."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[a-z-]+:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+)?$", var.permissions_boundary))
    error_message = "permissions_boundary must be the ARN of an IAM policy."
  }
}

variable "role_path" {
  description = "The path of the roles and policies of functions. A change replaces them."
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = length(var.role_path) <= 512
    error_message = "role_path must have at most 512 characters."
  }

  validation {
    condition     = can(regex("^/([A-Za-z0-9+=,.@_-]+/)*$", var.role_path))
    error_message = "role_path must begin and end with a slash, such as /larder-prod/, without wildcards."
  }
}

variable "kms_key_arn" {
  description = "ARN of a symmetric KMS key, in the stack's region, that encrypts tables, bucket, logs and the signing secret. Empty for AWS's keys."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[a-z0-9-]+)?$", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a KMS key, not of an alias."
  }
}

variable "existing_bucket" {
  description = "The name of a bucket, in the stack's account and region, for the artifacts. Larder uses its objects under artifacts/ and changes no settings. Empty for a bucket that the stack creates."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9][a-z0-9-]{1,61}[a-z0-9])?$", var.existing_bucket))
    error_message = "existing_bucket must be the name of a bucket without dots."
  }
}

variable "edge" {
  description = "Whether to create the edge. Clients use it only after `larder edge enable`, and no longer after `larder edge disable`."
  type        = bool
  default     = false
  nullable    = false
}

variable "edge_domain_name" {
  description = "A domain of your own for the edge, such as artifacts.example.com, with its EdgeCertificateArn. Empty for a domain of CloudFront."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9-]+(\\.[a-z0-9-]+)+)?$", var.edge_domain_name))
    error_message = "edge_domain_name must be a domain such as artifacts.example.com."
  }
}

variable "edge_certificate_arn" {
  description = "ARN of the ACM certificate of EdgeDomainName, in us-east-1. Required for EdgeDomainName."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[a-z-]+:acm:us-east-1:[0-9]{12}:certificate/[a-z0-9-]+)?$", var.edge_certificate_arn))
    error_message = "edge_certificate_arn must be the ARN of a certificate in us-east-1, the only region from which CloudFront takes them."
  }
}

variable "edge_price_class" {
  description = "Where the edge has locations. PriceClass_100 is Europe, North America and Israel, PriceClass_All is everywhere."
  type        = string
  default     = "PriceClass_100"
  nullable    = false

  validation {
    condition     = contains(["PriceClass_100", "PriceClass_200", "PriceClass_All"], var.edge_price_class)
    error_message = "edge_price_class must be one of PriceClass_100, PriceClass_200, PriceClass_All."
  }
}

variable "protect_data" {
  description = "Deletion protection and point-in-time recovery of accounts, API keys, teams and the audit. Disable it only for a trial stack."
  type        = bool
  default     = true
  nullable    = false
}

variable "throttling_rate" {
  description = "Requests per second that each endpoint of /v8/artifacts accepts, and that verifies API keys. Others get 429."
  type        = number
  default     = 2000
  nullable    = false

  validation {
    condition     = floor(var.throttling_rate) == var.throttling_rate && var.throttling_rate >= 1
    error_message = "throttling_rate must be a whole number, at least 1."
  }
}

variable "throttling_burst" {
  description = "How many requests each of these endpoints accepts in a burst above the rate."
  type        = number
  default     = 5000
  nullable    = false

  validation {
    condition     = floor(var.throttling_burst) == var.throttling_burst && var.throttling_burst >= 1
    error_message = "throttling_burst must be a whole number, at least 1."
  }
}

variable "account_throttling_rate" {
  description = "Requests per second that each other endpoint accepts. Requests above this rate get 429."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = floor(var.account_throttling_rate) == var.account_throttling_rate && var.account_throttling_rate >= 1
    error_message = "account_throttling_rate must be a whole number, at least 1."
  }
}

variable "account_throttling_burst" {
  description = "How many requests each other endpoint accepts in a burst above the rate."
  type        = number
  default     = 200
  nullable    = false

  validation {
    condition     = floor(var.account_throttling_burst) == var.account_throttling_burst && var.account_throttling_burst >= 1
    error_message = "account_throttling_burst must be a whole number, at least 1."
  }
}

variable "table_read_units" {
  description = "The maximum reads per second of each table, and of each of its indexes, which limits their cost."
  type        = number
  default     = 12000
  nullable    = false

  validation {
    condition     = floor(var.table_read_units) == var.table_read_units && var.table_read_units >= 1
    error_message = "table_read_units must be a whole number, at least 1."
  }
}

variable "table_write_units" {
  description = "The maximum writes per second of each table, which limits its cost and that of its indexes."
  type        = number
  default     = 4000
  nullable    = false

  validation {
    condition     = floor(var.table_write_units) == var.table_write_units && var.table_write_units >= 1
    error_message = "table_write_units must be a whole number, at least 1."
  }
}

variable "log_retention_days" {
  description = "How many days the logs are kept."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "alarms" {
  description = "Whether to create alarms. They cost $1.00 a month once the account's ten free alarms are used up."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarm_email" {
  description = "Email address for alarms. AWS first sends it a link to confirm."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([^@ ]+@[^@ ]+)?$", var.alarm_email))
    error_message = "alarm_email must match ^([^@ ]+@[^@ ]+)?$."
  }
}

variable "alarm_topic" {
  description = "ARN of your own SNS topic for alarms, instead of AlarmEmail."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?$", var.alarm_topic))
    error_message = "alarm_topic must match ^(arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?$."
  }
}

variable "alarm_stored_gigabytes" {
  description = "Gigabytes in the bucket above which an alarm is raised, for $0.10 a month more. 0 for no alarm."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.alarm_stored_gigabytes) == var.alarm_stored_gigabytes && var.alarm_stored_gigabytes >= 0
    error_message = "alarm_stored_gigabytes must be a whole number, at least 0."
  }
}

variable "alarm_growth_gigabytes" {
  description = "Gigabytes by which the bucket can grow in a day before an alarm is raised, for $0.10 a month more. 0 for no alarm."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.alarm_growth_gigabytes) == var.alarm_growth_gigabytes && var.alarm_growth_gigabytes >= 0
    error_message = "alarm_growth_gigabytes must be a whole number, at least 0."
  }
}

variable "alarm_traffic_gigabytes" {
  description = "Gigabytes downloaded from the bucket in a day above which an alarm is raised, for up to $3.70 a month more, because S3's request metrics cost too. 0 for no alarm."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.alarm_traffic_gigabytes) == var.alarm_traffic_gigabytes && var.alarm_traffic_gigabytes >= 0
    error_message = "alarm_traffic_gigabytes must be a whole number, at least 0."
  }
}

variable "monthly_budget_dollars" {
  description = "Dollars a month that the whole AWS account may cost before AWS Budgets notifies AlarmEmail or AlarmTopic. Free. 0 for no budget."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = floor(var.monthly_budget_dollars) == var.monthly_budget_dollars && var.monthly_budget_dollars >= 0
    error_message = "monthly_budget_dollars must be a whole number, at least 0."
  }
}

variable "show_dashboard" {
  description = "Whether to create a dashboard. The account's first three are free, each further one costs $3 a month."
  type        = bool
  default     = true
  nullable    = false
}

variable "tracing" {
  description = "With Active, X-Ray traces one request per second of each function and 5% of the others, for $5 a million. PassThrough traces none."
  type        = string
  default     = "PassThrough"
  nullable    = false

  validation {
    condition     = contains(["Active", "PassThrough"], var.tracing)
    error_message = "tracing must be one of Active, PassThrough."
  }
}
