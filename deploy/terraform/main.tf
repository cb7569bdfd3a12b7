# One Larder stack from the release in release/. README.md has the limits of this way.

terraform {
  required_version = ">= 1.7"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "stack" {
  description = "The name of the stack. Names of its resources begin with it."
  type        = string
  default     = "larder-prod"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.stack))
    error_message = "stack must have up to 24 lower-case letters, digits and hyphens."
  }
}

variable "parameters" {
  description = "The options that differ from their defaults, by their names in docs/configuration.md. CloudFormation checks the values."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "code_bucket" {
  description = "Your bucket for the code of releases, in the region of the stack. It has to keep versions."
  type        = string
}

variable "code_prefix" {
  description = "What the keys of the code begin with. By default, larder/ and the name of the stack, as `larder install` does."
  type        = string
  default     = null
}

variable "template" {
  description = "The template of the release for your region: some have no budgets (docs/install.md)."
  type        = string
  default     = "larder.template.json"
}

variable "role_arn" {
  description = "A service role for CloudFormation. By default, it uses your credentials."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the stack and of all its resources."
  type        = map(string)
  default     = {}
}

locals {
  release  = "${path.module}/release"
  template = "${local.release}/${var.template}"
  unknown  = setsubtract(keys(var.parameters), keys(jsondecode(file(local.template)).Parameters))
  prefix   = coalesce(var.code_prefix, "larder/${var.stack}/")
  template_key = join("", [
    local.prefix, "larder.template-", substr(filesha256(local.template), 0, 16), ".json"
  ])
}

data "aws_s3_bucket" "code" {
  bucket = var.code_bucket
}

# Archives and template are named by their content, and CloudFormation gets the versions that are uploaded here. What an upgrade no longer needs is deleted last, because a rollback
# reads it.
resource "aws_s3_object" "archive" {
  for_each = fileset(local.release, "*.zip")

  bucket = data.aws_s3_bucket.code.id
  key    = "${local.prefix}${each.value}"
  source = "${local.release}/${each.value}"

  checksum_algorithm = "SHA256"

  lifecycle {
    create_before_destroy = true

    postcondition {
      condition     = try(!contains(["", "null"], self.version_id), false)
      error_message = "code_bucket must keep versions."
    }
  }
}

resource "aws_s3_object" "template" {
  bucket       = data.aws_s3_bucket.code.id
  key          = local.template_key
  source       = local.template
  content_type = "application/json"

  checksum_algorithm = "SHA256"

  lifecycle {
    create_before_destroy = true
  }
}

locals {
  # JwtLayerVersion for jwt-layer-0123456789abcdef.zip, as tools/release/plain_template.py names it.
  versions = {
    for name, one in aws_s3_object.archive :
    "${join("", [for word in split("-", regex("^(.*)-[^-]*$", name)[0]) : title(word)])}Version" => one.version_id
  }
  host = data.aws_s3_bucket.code.bucket_regional_domain_name
}

resource "aws_cloudformation_stack" "larder" {
  name         = var.stack
  template_url = "https://${local.host}/${aws_s3_object.template.key}?versionId=${urlencode(aws_s3_object.template.version_id)}"
  parameters   = merge(var.parameters, local.versions, { CodeBucket = var.code_bucket, CodePrefix = local.prefix })
  capabilities = ["CAPABILITY_IAM"]
  iam_role_arn = var.role_arn
  tags         = var.tags

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  lifecycle {
    precondition {
      condition     = length(local.unknown) == 0
      error_message = "parameters has no option of Larder: ${join(", ", local.unknown)}."
    }
  }
}
