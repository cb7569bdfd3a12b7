# Without AWS's provider: copy variables.tf, parameters.tf and this file to an empty folder, then run `terraform test`.

mock_provider "aws" {}

variables {
  code_bucket = "acme-code"
}

run "defaults_protect_the_data" {
  command = plan

  assert {
    condition     = local.parameters["ProtectData"] == "true"
    error_message = "The data is not protected."
  }

  assert {
    condition     = local.parameters["RetentionDays"] == "30"
    error_message = "RetentionDays has another default."
  }
}

run "large_numbers_stay_whole" {
  command = plan

  variables {
    max_stored_bytes = 1000000000000000000
  }

  assert {
    condition     = local.parameters["MaxStoredBytes"] == "1000000000000000000"
    error_message = "MaxStoredBytes is ${local.parameters["MaxStoredBytes"]}."
  }
}

run "texts_arrive_unchanged" {
  command = plan

  variables {
    product_name = "Acme \"Cache\" \\ $${x} ☃"
  }

  assert {
    condition     = local.parameters["ProductName"] == "Acme \"Cache\" \\ $${x} ☃"
    error_message = "ProductName is ${local.parameters["ProductName"]}."
  }
}

run "wrong_values_are_refused_by_name" {
  command = plan

  variables {
    retention_days     = 0
    scoped_share       = 50.5
    over_quota         = "delete"
    default_key_prefix = "vca_x"
    alarm_email        = "nobody"
  }

  expect_failures = [
    var.retention_days,
    var.scoped_share,
    var.over_quota,
    var.default_key_prefix,
    var.alarm_email,
  ]
}
